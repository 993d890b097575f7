import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { closedLoop, type Load, openLoop } from '../load/loops.ts';
import { rounded } from '../measure/figures.ts';
import type { Phase } from '../measure/phase.ts';
import type { Goal, Table } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

/** What dispatchers may request yet of a webhook that has just been put on hold, or whose deliveries were cancelled. */
const HELD_AFTER_MS = 2_000;
const CANCELLED_AFTER_MS = 5_000;
/** How long a cancelled webhook is watched, and how long a release may take. */
const WATCH_MS = 30_000;
const PATIENCE_MS = 900_000;
const POLL_MS = 20;
/** Of the phases before the hold. */
const PLAIN_SECONDS = 30;
/** Messages of a batch: 1 KiB each, and half of what a request may have. */
const BATCH = 500;
const BATCHES_AT_ONCE = 4;
/** The API counts the deliveries that wait no further. */
const MOST_COUNTED = 100_000;
/** How many of the cancelled deliveries are read. */
const LISTED = 1_000;

export const hold = defineScenario({
  summary: 'a webhook on hold: its release, what other endpoints notice, and cancelling what waits',
  isLimited: true,
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 60, meaning: 'seconds of the hold' },
    rate: { default: 200, meaning: 'messages per second to the other endpoints' },
    held: { default: 170, meaning: 'messages per second to the webhook on hold' },
    cancelled: { default: 100_000, meaning: 'pending deliveries that one request cancels' },
  },
  async run(bench, options) {
    const others = await bench.openEndpoints({ count: options.endpoints });
    const webhook = await openWebhook(bench);
    await warmUp(bench, others, { warmup: options.warmup });
    const held = await holdAndRelease(bench, { ...options, others, webhook });
    const cancelling = await cancelAll(bench, webhook, options.cancelled);
    const { alone, busy, onHold, released, release, count } = held;
    return {
      phases: [alone, busy, onHold, released],
      goals: goalsOf(held, cancelling),
      tables: [tableOf(held, cancelling)],
      extra: { cancelling },
      isComplete:
        release.requests.length === count &&
        messagesOf(release).length === count &&
        cancelling.isShown,
    };
  },
});

interface Hold {
  others: Load;
  webhook: WaitingOwner;
  seconds: number;
  /** Messages per second to the other endpoints, and to the webhook on hold. */
  rate: number;
  held: number;
}

interface Held {
  alone: Phase;
  /** Beside as much as the webhook takes. */
  busy: Phase;
  onHold: Phase;
  released: Phase;
  /** Messages of the hold. */
  count: number;
  requestedOnHold: number;
  /** Of the webhook, while nothing waits, and from its resume on. */
  plain: Watched;
  release: Watched;
}

async function holdAndRelease(
  bench: Bench,
  { others, webhook, rate, held: heldRate, seconds }: Hold,
): Promise<Held> {
  const measure = (name: string, forSeconds: number, meanwhile?: () => Promise<unknown>) =>
    bench.measure({
      name: `other endpoints, ${rate}/s, ${name}`,
      load: async () => {
        const working = meanwhile?.();
        const record = await openLoop(others, { ratePerSecond: rate, seconds: forSeconds });
        await working;
        return record;
      },
    });
  const { api, id, requests } = webhook;
  const toWebhook: Load = { ...others, send: () => bench.client.sendToWebhook(id) };
  const alone = await measure('alone', PLAIN_SECONDS);
  const plainWatch = startWatch(webhook);
  const busy = await measure('beside as much as the webhook takes', PLAIN_SECONDS, () =>
    closedLoop(toWebhook, { connections: CONNECTIONS, seconds: PLAIN_SECONDS }),
  );
  const plain = plainWatch.end();

  await api.webhooks.hold(id);
  await wait(HELD_AFTER_MS);
  const requestedBefore = requests.length;
  const count = heldRate * seconds;
  const onHold = await measure('beside the hold', seconds, () =>
    openLoop(toWebhook, { ratePerSecond: heldRate, seconds }),
  );
  await webhook.untilWaiting(count);
  const requestedOnHold = requests.length - requestedBefore;

  const releaseWatch = startWatch(webhook);
  const releaseSeconds = Math.ceil((1.2 * count) / perSecond(plain)) + 5;
  const released = await measure('beside the release', releaseSeconds, async () => {
    await api.webhooks.resume(id);
    await releaseWatch.untilRequested(count);
  });
  const release = releaseWatch.end();
  return { alone, busy, onHold, released, count, requestedOnHold, plain, release };
}

function goalsOf(
  { alone, busy, onHold, released, requestedOnHold, plain, release }: Held,
  { respondedMs, requested }: Cancelling,
): Goal[] {
  const ratio = perSecond(release) / perSecond(plain);
  const memory = residentMiB(onHold) / residentMiB(busy);
  return [
    goal('requests on hold, after 2 s', { atMost: 0, measured: requestedOnHold }),
    goal('first request after resume', { ...ms(1_000), measured: firstAfterMs(release) }),
    goal('requests/s of the release ÷ of plain messages', {
      ...times({ atLeast: 0.9 }),
      measured: rounded(ratio, 2),
    }),
    goal('p99 of others beside the hold ÷ alone', {
      ...times({ atMost: 1.2 }),
      measured: p99Ratio(onHold, alone),
    }),
    goal('p99 of others beside the release ÷ beside plain messages', {
      ...times({ atMost: 1.2 }),
      measured: p99Ratio(released, busy),
    }),
    goal('resident memory of the services, end of the hold ÷ before', {
      ...times({ atMost: 1.1 }),
      measured: rounded(memory, 2),
    }),
    goal('response of cancel-pending', { ...ms(1_000), measured: respondedMs }),
    goal('requests 5 s after cancel-pending', { atMost: 0, measured: requested }),
  ];
}

const goal = (name: string, rest: Partial<Goal> & Pick<Goal, 'measured'>): Goal => ({
  name,
  unit: '',
  ...rest,
});

const ms = (atMost: number) => ({ unit: 'ms', atMost });

const times = (limit: Pick<Goal, 'atMost' | 'atLeast'>) => ({ unit: '×', ...limit });

interface Requested {
  messageId: string;
  atMs: number;
}

/** The webhook that is put on hold. */
interface WaitingOwner {
  id: string;
  api: Posthorn;
  /** What its endpoint got, in this order. */
  requests: Requested[];
  /** Sends this many messages as fast as they are accepted. */
  sendMany: (count: number) => Promise<void>;
  untilWaiting: (count: number) => Promise<void>;
  signal: AbortSignal;
}

async function openWebhook(bench: Bench): Promise<WaitingOwner> {
  const { stack, signal, client } = bench;
  const requests: Requested[] = [];
  const note = (messageId: string): void => {
    requests.push({ messageId, atMs: performance.now() });
  };
  const { webhookIds } = await bench.openTargets({ count: 1, note });
  const id = requiredAt(webhookIds, 0, 'webhook');
  const api = new Posthorn(stack.credentials);
  const targets = Array<string>(BATCH).fill(id);
  return {
    id,
    api,
    requests,
    signal,
    async sendMany(count) {
      let left = count;
      const sendSome = async (): Promise<void> => {
        while (left > 0 && !signal.aborted) {
          const size = Math.min(left, BATCH);
          left -= size;
          const sent = await client.sendBatch(targets.slice(0, size));
          left += sent.filter((each) => !('id' in each)).length;
        }
      };
      await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, sendSome));
    },
    async untilWaiting(count) {
      const waiting = async () => (await api.webhooks.get(id)).waiting;
      while ((await waiting()) < Math.min(count, MOST_COUNTED))
        await wait(1_000, undefined, { signal });
    },
  };
}

/** What the endpoint got from one moment on. */
interface Watched {
  startedMs: number;
  requests: readonly Requested[];
}

function startWatch({ requests, signal }: WaitingOwner) {
  const from = requests.length;
  const startedMs = performance.now();
  return {
    async untilRequested(count: number): Promise<void> {
      const endMs = startedMs + PATIENCE_MS;
      while (requests.length - from < count && performance.now() < endMs) {
        await wait(POLL_MS, undefined, { signal });
      }
    },
    end: (): Watched => ({ startedMs, requests: requests.slice(from) }),
  };
}

function perSecond({ requests }: Watched): number {
  const [first, last] = [requests[0]?.atMs ?? 0, requests.at(-1)?.atMs ?? 0];
  return rounded(requests.length / ((last - first) / 1_000));
}

const firstAfterMs = ({ requests, startedMs }: Watched): number =>
  rounded((requests[0]?.atMs ?? Infinity) - startedMs);

const messagesOf = ({ requests }: Watched): string[] => [
  ...new Set(requests.map(({ messageId }) => messageId)),
];

/** How many places a message came before an older one or behind a newer one, at most. */
function displaced(watched: Watched): number {
  const order = messagesOf(watched);
  const place = new Map(order.toSorted().map((messageId, n) => [messageId, n]));
  return order.reduce((most, id, n) => Math.max(most, Math.abs((place.get(id) ?? n) - n)), 0);
}

interface Cancelling {
  count: number;
  respondedMs: number;
  /** From five seconds after the response on, with the hold ended. */
  requested: number;
  /** Whether each of the newest deliveries is shown as cancelled, with its reason. */
  isShown: boolean;
}

async function cancelAll(
  { log, signal }: Bench,
  webhook: WaitingOwner,
  count: number,
): Promise<Cancelling> {
  const { api, id, requests } = webhook;
  log(`Measuring: cancelling ${count} deliveries`);
  await api.webhooks.hold(id);
  await wait(HELD_AFTER_MS);
  await webhook.sendMany(count);
  const startedMs = performance.now();
  await api.webhooks.cancelPending(id);
  const respondedMs = rounded(performance.now() - startedMs);
  await api.webhooks.resume(id);
  await wait(CANCELLED_AFTER_MS, undefined, { signal });
  const before = requests.length;
  await wait(WATCH_MS, undefined, { signal });
  return {
    count,
    respondedMs,
    requested: requests.length - before,
    isShown: await isShown(webhook),
  };
}

async function isShown({ api, id }: WaitingOwner): Promise<boolean> {
  let read = 0;
  for await (const { status, reason } of api.deliveries.list({ webhookId: id, limit: 100 })) {
    if (status !== 'cancelled' || reason !== 'cancelled_by_client') return false;
    read += 1;
    if (read === LISTED) return true;
  }
  return false;
}

const SERVICES = ['gateway', 'dispatcher', 'retry'];

function residentMiB({ parts }: Phase): number {
  return SERVICES.reduce((sum, name) => sum + (parts[name]?.residentMiB ?? 0), 0);
}

function p99Ratio(one: Phase, other: Phase): number | null {
  const [p99, base] = [one.endToEndMs.p99, other.endToEndMs.p99];
  return p99 === null || base === null || base === 0 ? null : rounded(p99 / base, 2);
}

function tableOf(
  { plain, release }: Held,
  { count: cancelled, respondedMs, requested }: Cancelling,
): Table {
  return {
    title: 'The webhook',
    rows: {
      'plain messages': { requests: plain.requests.length, 'requests/s': perSecond(plain) },
      'released from its hold': {
        requests: release.requests.length,
        'requests/s': perSecond(release),
        'first after ms': firstAfterMs(release),
        twice: release.requests.length - messagesOf(release).length,
        'places out of order': displaced(release),
      },
    },
    notes: [
      `cancel-pending of ${cancelled}: responded after ${respondedMs} ms, ${requested} requests later than 5 s`,
    ],
  };
}
