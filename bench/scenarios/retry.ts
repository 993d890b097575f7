import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { formatDelay } from '@posthorn/domain/delivery/schedule.ts';
import { DUE_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { encodeDeliveryFailed } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { required } from '@posthorn/domain/required.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { newDeliveries, type Owner, storeFailed } from '../load/deliveries.ts';
import { createOpenLoopSchedule, inWorkers } from '../load/loops.ts';
import { createRetryTracker, latenessFigures, type RetryTracker } from '../measure/lateness.ts';
import { rounded } from '../measure/figures.ts';
import { untilArrived } from '../measure/phase.ts';
import { type Spending, watchSpending } from '../measure/spending.ts';
import { memoryFigures, watchMemory } from '../measure/watch-memory.ts';
import { atLeast, atMost, partRows, spendingNotes } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { followTopic, openStores, type OpenStores } from '../stack/open-stores.ts';

export const retry = defineScenario({
  summary:
    'lateness of retries after 5 s; memory and idle CPU with a million records parked for 10 h',
  options: {
    warmup: { default: 30, meaning: 'seconds of the same load before the measurement' },
    seconds: { default: 60, meaning: 'seconds of failures whose retries are measured' },
    rate: { default: 2_000, meaning: 'failures per second, and due retries per second 5 s later' },
    webhooks: { default: 300, meaning: 'webhooks whose deliveries fail' },
    parked: { default: 1_000_000, meaning: 'records parked on the longest delay topic' },
    rest: { default: 60, meaning: 'seconds to watch the service without and with them' },
  },
  async run(bench, options) {
    // Attempts at the released records would be measured as well; the bench reads those records instead.
    await bench.stack.stopService('dispatcher');
    const owner = await createOwner(bench, options.webhooks);
    const stores = await openStores(bench.stack.addresses);
    const tracker = createRetryTracker();
    const follower = await followReleases(stores, tracker);
    const deps = { bench, stores, tracker, owner };
    try {
      const late = await measureLateness(deps, options);
      tracker.forgetAll();
      const parked = await measureParked(deps, options);
      const { missing, early, timeline } = late.figures;
      const p99 = late.figures.receivedAfterMs.p99;
      const isKept = parked.stillParked === options.parked && parked.released === 0;
      return {
        phases: [],
        goals: [
          atMost(`${late.name}: received after due, p99`, 250, 'ms', p99),
          atMost('released before they were due', 0, '', early),
          atMost('due and not released', 0, '', missing),
          atLeast(`${parked.name}: still parked`, options.parked, '', parked.stillParked),
          atMost(`${parked.name}: released`, 0, '', parked.released),
        ],
        tables: [...late.tables, parked.table],
        extra: { lateness: timeline, usage: [late.usage], parked: parked.samples },
        isComplete: missing === 0 && early === 0 && isKept,
      };
    } finally {
      await follower.close();
      await stores.close();
    }
  },
});

const followReleases = ({ kafka, topics }: OpenStores, tracker: RetryTracker) =>
  followTopic(kafka, topics.retryDue, ({ message, receivedAtMs }) => {
    // Not with the decoder of records, which computes two ids with a digest each.
    const { messageId } = JSON.parse(String(message.value)) as { messageId: string };
    tracker.note(messageId, { releasedAtMs: Number(message.timestamp), receivedAtMs });
  });

/** Unused: the stopped dispatcher sends nothing there. */
const UNUSED_ADDRESS = 'http://127.0.0.1:9';

async function createOwner({ client, stack }: Bench, webhooks: number): Promise<Owner> {
  const appId = await client.createApp();
  const urls = Array.from({ length: webhooks }, (_, n) => `${UNUSED_ADDRESS}/${n}`);
  const webhookIds = await client.createWebhooks(appId, urls);
  return { companyId: stack.credentials.companyId, appId, webhookIds };
}

interface Deps {
  bench: Bench;
  stores: OpenStores;
  tracker: RetryTracker;
  owner: Owner;
}

/**
 * Publishes failures at a fixed rate for the retry service, first unmeasured, and measures when their
 * retries are released.
 */
async function measureLateness(
  deps: Deps,
  { rate, seconds, warmup }: { rate: number; seconds: number; warmup: number },
) {
  const { bench, stores, tracker, owner } = deps;
  const [delayMs = 0] = stores.schedule;
  const all = newDeliveries(owner, Math.round(rate * (warmup + seconds)));
  bench.log(`Storing ${all.length} deliveries that have failed once`);
  await storeFailed(stores.deliveries, all, delayMs);
  const unmeasured = all.splice(0, Math.round(rate * warmup));
  bench.log(`Warming up for ${warmup} s`);
  await failAndWait(deps, unmeasured, { rate, delayMs });
  const name = `${rate} retries due per second, ${formatDelay(delayMs)} after their failure`;
  bench.log(`Measuring: ${name}`);
  tracker.forgetAll();
  const endSpending = watchSpending(bench.usage);
  const startedAtMs = await failAndWait(deps, all, { rate, delayMs });
  const spending = endSpending(all.length);
  const figures = latenessFigures(tracker.all(), startedAtMs);
  const { due, early, missing, duplicates } = figures;
  const lateness = {
    title: name,
    rows: {
      'received after due, ms': figures.receivedAfterMs,
      'released after due, ms': figures.releasedAfterMs,
      'read after release, ms': figures.readingMs,
      'failure stored after its end, ms': figures.storedAfterMs,
    },
    notes: [`due ${due}, early ${early}, missing ${missing}, duplicates ${duplicates}`],
  };
  const rows = partRows(spending);
  const spent = { title: `${name}: CPU and memory`, rows, notes: spendingNotes(spending) };
  return { name, figures, usage: spending.usage, tables: [lateness, spent] };
}

const PATIENCE = { quietMs: 25_000, totalMs: 180_000 };
const TICK_MS = 5;
/** Failures that become due meanwhile go into the next request, as in the dispatcher. */
const SENDS_AT_ONCE = 2;

/**
 * Publishes failed first attempts at a fixed rate, whatever Kafka does, and waits for their retries. Their end times are
 * evenly spread. Resolves with the start time.
 */
async function failAndWait(
  { bench: { signal }, stores: { records, topics }, tracker }: Deps,
  deliveries: readonly DeliveryRef[],
  { rate, delayMs }: { rate: number; delayMs: number },
): Promise<number> {
  const schedule = createOpenLoopSchedule(rate, deliveries.length / rate);
  const startedAtMs = Date.now();
  const clockAtStartMs = performance.now();
  const failureOf = (ref: DeliveryRef, n: number) => {
    const endedAtMs = Math.floor(startedAtMs + schedule.intendedMs(n));
    const outcome = { attemptNumber: 1, endedAtMs, outcome: 'http_5xx', statusCode: 500 } as const;
    const value = encodeDeliveryFailed({ ...ref, ...outcome });
    const headers = { requestId: randomUUID() };
    return {
      retry: tracker.expect(ref.messageId, { endedAtMs, dueAtMs: endedAtMs + delayMs }),
      record: { topic: topics.deliveryFailed, key: ref.webhookId, value, headers },
    };
  };
  const publish = async (from: number, to: number): Promise<void> => {
    const failures = deliveries.slice(from, to).map((ref, n) => failureOf(ref, from + n));
    try {
      await records.publish(failures.map(({ record }) => record));
    } catch {
      // It has no storing time, and is missing at the end unless it was stored after all.
      return;
    }
    const storedAtMs = Date.now();
    for (const { retry: failed } of failures) failed.storedAtMs = storedAtMs;
  };
  const sending = new Set<Promise<void>>();
  for (let sent = 0; sent < schedule.total && !signal.aborted;) {
    const due = schedule.dueCount(performance.now() - clockAtStartMs);
    if (due > sent && sending.size < SENDS_AT_ONCE) {
      const send = publish(sent, due).finally(() => sending.delete(send));
      sending.add(send);
      sent = due;
    }
    await wait(TICK_MS);
  }
  await Promise.all(sending);
  await untilArrived(tracker.missing, { ...PATIENCE, signal });
  return startedAtMs;
}

/** Reading the metrics once a second would be a considerable part of the CPU of an idle service. */
const SAMPLE_EVERY_MS = 5_000;
const PARKED_AT_ONCE = 5_000;
const PAGES_AT_ONCE = 2;

/**
 * Parks records on the longest delay topic, as the retry service does when an attempt has just failed, and measures their
 * cost for it while it waits.
 */
async function measureParked(
  { bench, stores, tracker, owner }: Deps,
  { parked, rest }: { parked: number; rest: number },
) {
  const { log, signal } = bench;
  const { topics, schedule } = stores;
  const delayMs = Math.max(...schedule);
  const topic = required(topics.parkedByDelayMs, delayMs, 'delay topic');
  const attemptNumber = schedule.indexOf(delayMs) + 2;
  const name = `${parked} parked for ${formatDelay(delayMs)}`;
  const unexpected = tracker.unexpected();
  log(`Watching the retry service for ${rest} s with nothing parked`);
  const before = await restFor(bench, rest);
  const memory = await watchMemory(bench, { service: 'retry', everyMs: SAMPLE_EVERY_MS });
  log(`Measuring: ${name}`);
  const startedAtMs = performance.now();
  await inWorkers(
    parked,
    { size: PARKED_AT_ONCE, atOnce: PAGES_AT_ONCE, signal },
    async (_, size) => {
      const dueAtMs = Date.now() + delayMs;
      const records = newDeliveries(owner, size).map((ref) => ({
        topic,
        key: ref.webhookId,
        value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
        headers: { requestId: randomUUID(), [DUE_AT_HEADER]: String(dueAtMs) },
      }));
      await stores.records.publish(records);
    },
  );
  const parkSeconds = rounded((performance.now() - startedAtMs) / 1_000);
  log(`Parked in ${parkSeconds} s; watching the retry service for ${rest} s`);
  const after = await restFor(bench, rest);
  const samples = await memory.stop();
  const stillParked = await countParked(stores, topic);
  const released = tracker.unexpected() - unexpected;
  const figures = memoryFigures(samples);
  const cpuPercent = { before: percentOf(before, rest), after: percentOf(after, rest) };
  const table = {
    title: `${name}: the retry service`,
    rows: {
      'resident memory, MiB': figures.residentMiB,
      'heap used, MiB': figures.heapUsedMiB,
      timers: figures.timers,
      'CPU when idle, % of a core': cpuPercent,
    },
    notes: [`parked in ${parkSeconds} s, still parked ${stillParked}, released ${released}`],
  };
  return { name, stillParked, released, samples, table };
}

async function restFor({ usage, signal }: Bench, seconds: number): Promise<Spending> {
  const endSpending = watchSpending(usage);
  await wait(seconds * 1_000, undefined, { signal }).catch(() => undefined);
  return endSpending(0);
}

/** Computed from the CPU seconds: the rounding of the cores is about the use of an idle service. */
function percentOf({ parts }: Spending, seconds: number): number | null {
  const { retry: part } = parts;
  return part === undefined ? null : rounded((100 * part.cpuSeconds) / seconds, 2);
}

/** Counts the records beyond the committed offsets of the retry service. */
async function countParked({ kafka, groupPrefix }: OpenStores, topic: string): Promise<number> {
  const groupId = `${groupPrefix}retry-release-long`;
  const positions = createGroupPositions(kafka, { groupId, topics: [topic] });
  try {
    return (await positions.read()).reduce((sum, { lag }) => sum + lag, 0);
  } finally {
    await positions.close();
  }
}
