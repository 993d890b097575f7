import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { closedLoop, type Load, openLoop, sendMany } from '../load/loops.ts';
import { rounded } from '../measure/figures.ts';
import { type Phase, servicesMiB } from '../measure/phase.ts';
import {
  firstAfterMs,
  requestsPerSecond,
  type Watched,
  watchRequests,
} from '../measure/requests.ts';
import { atLeast, atMost, type Goal, ratio } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './flows.ts';

/** What dispatchers may request yet of a webhook that has just been put on hold, or whose deliveries were cancelled. */
const HELD_AFTER_MS = 2_000;
const CANCELLED_AFTER_MS = 5_000;
/** How long a cancelled webhook is watched. */
const WATCH_MS = 30_000;
/** Of the phases before the hold. */
const PLAIN_SECONDS = 30;
/** Messages of a batch: 1 KiB each, and half of what a request may have. */
const BATCH = 500;
/** The API counts the deliveries that wait no further. */
const MOST_COUNTED = 100_000;
/** How many of the cancelled deliveries are read, at most. */
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
    const { load: others } = await bench.openEndpoints({ count: options.endpoints });
    const webhook = await openWebhook(bench);
    await warmUp(bench, others, options.warmup);
    const held = await holdAndRelease(bench, { ...options, others, webhook });
    const { alone, busy, onHold, released, plain, release, count } = held;
    const cancelling = await cancelAll(bench, webhook, options.cancelled);
    const { respondedMs, requested } = cancelling;
    const twice = release.requests.length - messagesOf(release).length;
    const rowOf = (watched: Watched) => ({
      requests: watched.requests.length,
      'requests/s': requestsPerSecond(watched),
    });
    return {
      phases: [alone, busy, onHold, released],
      goals: [
        ...holdGoals(held),
        atMost('response of cancel-pending', 1_000, 'ms', respondedMs),
        atMost('requests 5 s after cancel-pending', 0, '', requested),
      ],
      tables: [
        {
          title: 'The webhook',
          rows: {
            'plain messages': rowOf(plain),
            'released from its hold': {
              ...rowOf(release),
              'first after ms': firstAfterMs(release),
              twice,
              'places out of order': displaced(release),
            },
          },
          notes: [
            `cancel-pending of ${cancelling.count}: responded after ${respondedMs} ms, ${requested} requests later than 5 s`,
          ],
        },
      ],
      extra: { cancelling },
      isComplete: release.requests.length === count && twice === 0 && cancelling.isShown,
    };
  },
});

function holdGoals(held: Awaited<ReturnType<typeof holdAndRelease>>): Goal[] {
  const { alone, busy, onHold, released, plain, release } = held;
  const p99 = (what: string, one: Phase, other: Phase) =>
    atMost(
      `p99 of others beside ${what}`,
      1.2,
      '×',
      ratio(one.endToEndMs.p99, other.endToEndMs.p99),
    );
  const rates = ratio(requestsPerSecond(release), requestsPerSecond(plain));
  const memory = ratio(servicesMiB(onHold), servicesMiB(busy));
  return [
    atMost('requests on hold, after 2 s', 0, '', held.requestedOnHold),
    atMost('first request after resume', 1_000, 'ms', firstAfterMs(release)),
    atLeast('requests/s of the release ÷ of plain messages', 0.9, '×', rates),
    p99('the hold ÷ alone', onHold, alone),
    p99('the release ÷ beside plain messages', released, busy),
    atMost('resident memory of the services, end of the hold ÷ before', 1.1, '×', memory),
  ];
}

interface Hold {
  others: Load;
  webhook: HeldWebhook;
  seconds: number;
  /** Messages per second to the other endpoints, and to the webhook on hold. */
  rate: number;
  held: number;
}

async function holdAndRelease(
  bench: Bench,
  { others, webhook, rate, held: heldRate, seconds }: Hold,
) {
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
  const { api, id, requests, load } = webhook;
  const alone = await measure('alone', PLAIN_SECONDS);
  const plainWatch = webhook.start();
  const busy = await measure('beside as much as the webhook takes', PLAIN_SECONDS, () =>
    closedLoop(load, { connections: CONNECTIONS, seconds: PLAIN_SECONDS }),
  );
  const plain = plainWatch.end();

  await api.webhooks.hold(id);
  await wait(HELD_AFTER_MS);
  const requestedBefore = requests.length;
  const count = heldRate * seconds;
  const onHold = await measure('beside the hold', seconds, () =>
    openLoop(load, { ratePerSecond: heldRate, seconds }),
  );
  const waiting = async () => (await api.webhooks.get(id)).waiting;
  const shown = Math.min(count, MOST_COUNTED);
  while ((await waiting()) < shown) await wait(1_000, undefined, { signal: bench.signal });
  const requestedOnHold = requests.length - requestedBefore;

  const releaseWatch = webhook.start();
  const releaseSeconds = Math.ceil((1.2 * count) / requestsPerSecond(plain)) + 5;
  const released = await measure('beside the release', releaseSeconds, async () => {
    await api.webhooks.resume(id);
    await releaseWatch.untilRequested(count);
  });
  const release = releaseWatch.end();
  return { alone, busy, onHold, released, count, requestedOnHold, plain, release };
}

type HeldWebhook = Awaited<ReturnType<typeof openWebhook>>;

/** Opens the webhook that is put on hold. */
async function openWebhook(bench: Bench) {
  const watch = watchRequests(bench.signal);
  const { webhookIds, load, batchesOf } = await bench.openEndpoints({ count: 1, note: watch.note });
  return {
    ...watch,
    id: requiredAt(webhookIds, 0, 'webhook'),
    load,
    signal: bench.signal,
    api: new Posthorn(bench.stack.credentials),
    sendMany: (count: number) => sendMany(batchesOf(BATCH), count),
  };
}

const messagesOf = ({ requests }: Watched): string[] => [
  ...new Set(requests.map(({ messageId }) => messageId)),
];

/** How many places a message came before an older one or behind a newer one, at most. */
function displaced(watched: Watched): number {
  const order = messagesOf(watched);
  const place = new Map(order.toSorted().map((messageId, n) => [messageId, n]));
  return order.reduce((most, id, n) => Math.max(most, Math.abs((place.get(id) ?? n) - n)), 0);
}

/** `requested`: from five seconds after the response on, with the hold ended. */
async function cancelAll({ log, signal }: Bench, webhook: HeldWebhook, count: number) {
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
  const requested = requests.length - before;
  return {
    count,
    respondedMs,
    requested,
    isShown: await isShown(webhook, Math.min(count, LISTED)),
  };
}

/** Whether each of this many newest deliveries is shown as cancelled, with its reason. */
async function isShown({ api, id }: HeldWebhook, count: number): Promise<boolean> {
  let read = 0;
  for await (const { status, reason } of api.deliveries.list({ webhookId: id, limit: 100 })) {
    if (status !== 'cancelled' || reason !== 'cancelled_by_client') return false;
    read += 1;
    if (read >= count) return true;
  }
  return false;
}
