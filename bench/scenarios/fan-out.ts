import { setTimeout as wait } from 'node:timers/promises';
import type { LoadRecord, Sent } from '../load/loops.ts';
import { percentilesOf, rounded } from '../figures/percentiles.ts';
import type { Arrivals } from '../load/arrivals.ts';
import { untilArrived } from '../measure/until-arrived.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { LOAD_OPTIONS, warmUp } from './warm-up.ts';

/** One message to every webhook of an app. */
interface FanOut {
  acceptMs: number;
  /** From sending to the last arrival; null when not all arrived. */
  lastArrivalMs: number | null;
}

interface App {
  id: string;
  webhooks: number;
}

const PORTS = 20;
/** Between two messages, so that settling one does not slow down the next. */
const PAUSE_MS = 500;
/** The first retry comes after 5 s: what it delivers is late, not missing. */
const QUIET_MS = 25_000;

export const fanOut = defineScenario({
  summary: 'one message to 1,000 webhooks of an app, several times',
  options: {
    ...LOAD_OPTIONS,
    webhooks: { default: 1_000, meaning: 'webhooks of the app' },
    repeats: { default: 20, meaning: 'messages to measure, one after the other' },
    unmeasured: { default: 5, meaning: 'messages to the app before those, unmeasured' },
  },
  async run(bench, { warmup, endpoints, webhooks, repeats, unmeasured }) {
    await warmUp(bench, await bench.openEndpoints({ count: endpoints }), { warmup });
    const id = await bench.openApp({ count: webhooks, ports: Math.min(PORTS, webhooks) });
    const app = { id, webhooks };
    await sendOneByOne(bench, app, unmeasured);
    const fanOuts: FanOut[] = [];
    const phase = await bench.measure({
      name: `${repeats} messages to ${webhooks} webhooks each, counted by delivery`,
      load: async () => {
        const record = await sendOneByOne(bench, app, repeats);
        fanOuts.push(...fanOutsOf(record, bench.arrivals));
        return record;
      },
    });
    return { phases: [phase], goals: [], extra: summaryOf(fanOuts, webhooks) };
  },
});

/**
 * Each message waits for the last arrival of the previous one. The record has one entry for each
 * expected delivery.
 */
async function sendOneByOne(bench: Bench, app: App, count: number): Promise<LoadRecord> {
  const record: LoadRecord = {
    startedAtMs: performance.now(),
    endedAtMs: 0,
    sent: [],
    refused: {},
  };
  for (let n = 0; n < count && !bench.signal.aborted; n += 1) {
    await sendOne(bench, app, record);
    await wait(PAUSE_MS);
  }
  return { ...record, endedAtMs: performance.now() };
}

async function sendOne({ client, arrivals, signal }: Bench, app: App, record: LoadRecord) {
  const sentAtMs = performance.now();
  const sending = await client.sendToApp(app.id);
  if ('refusedWith' in sending) {
    record.refused[sending.refusedWith] = (record.refused[sending.refusedWith] ?? 0) + 1;
    return;
  }
  const { id } = sending;
  const times = { intendedAtMs: sentAtMs, sentAtMs, acceptedAtMs: performance.now() };
  const expected = Array.from({ length: app.webhooks }, (_, endpoint) => ({
    id,
    endpoint,
    ...times,
  }));
  record.sent.push(...expected);
  const missing = () =>
    expected.filter(({ endpoint }) => arrivals.count(id, endpoint) === 0).length;
  await untilArrived(missing, { quietMs: QUIET_MS, totalMs: 2 * QUIET_MS, signal });
}

function fanOutsOf({ sent }: LoadRecord, arrivals: Arrivals): FanOut[] {
  const messages = Map.groupBy(sent, ({ id }) => id);
  return [...messages.values()].map((expected) => fanOutOf(expected, arrivals));
}

function fanOutOf(expected: readonly Sent[], arrivals: Arrivals): FanOut {
  const [{ sentAtMs, acceptedAtMs } = { sentAtMs: 0, acceptedAtMs: 0 }] = expected;
  const arrivedAt = expected.map(({ id, endpoint }) => arrivals.firstAtMs(id, endpoint));
  const arrivedAtMs = arrivedAt.filter((atMs) => atMs !== undefined);
  const isComplete = arrivedAtMs.length === expected.length;
  return {
    acceptMs: rounded(acceptedAtMs - sentAtMs),
    lastArrivalMs: isComplete ? rounded(Math.max(...arrivedAtMs) - sentAtMs) : null,
  };
}

function summaryOf(fanOuts: readonly FanOut[], webhooks: number) {
  const lastArrivals = fanOuts.map(({ lastArrivalMs }) => lastArrivalMs);
  const lastArrivalMs = percentilesOf(lastArrivals.filter((ms) => ms !== null));
  const { p50 } = lastArrivalMs;
  return {
    acceptMs: percentilesOf(fanOuts.map(({ acceptMs }) => acceptMs)),
    lastArrivalMs,
    deliveriesPerSecond: p50 === null ? null : Math.round((webhooks * 1_000) / p50),
    fanOuts,
  };
}
