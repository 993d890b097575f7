import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { closedBatches, closedLoop, type Load, openLoop, sendMany } from '../load/loops.ts';
import { rounded } from '../measure/figures.ts';
import { metricBy, readMetrics } from '../measure/metrics.ts';
import { type Phase, servicesMiB } from '../measure/phase.ts';
import { requestsPerSecond, type Watched, watchRequests } from '../measure/requests.ts';
import { atLeast, atMost, type Goal, ratio } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './flows.ts';

/** Keys that are busy beside a blocked one, and over which the second backlog is spread. */
const KEYS = 200;
const A_KEY = 10;
const BATCH = 500;
const POLL_MS = 100;

export const order = defineScenario({
  summary:
    'ordering keys: what they cost, a hot key, busy keys beside a blocked one, and how a backlog drains',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 20, meaning: 'seconds of each phase' },
    rate: { default: 200, meaning: 'messages per second to the busy keys' },
    backlog: { default: 10_000, meaning: 'deliveries that wait behind a blocked key' },
    blocked: { default: 5_000, meaning: 'keys that are blocked while memory is read' },
  },
  async run(bench, { warmup, endpoints, seconds, rate, backlog, blocked }) {
    const plain = await bench.openEndpoints({ count: endpoints });
    await warmUp(bench, plain.load, warmup);
    const costs = await measureCosts(bench, plain, seconds);
    const hot = await openOrdered(bench);
    const inMemory = await measureHotKey(bench, hot, seconds);
    const busy = (name: string) =>
      bench.measure({
        name: `${KEYS} busy keys, ${rate}/s, ${name}`,
        load: () => openLoop(busyKeys(bench, hot), { ratePerSecond: rate, seconds }),
      });
    const alone = await busy('alone');
    const headId = await blockKey(hot, 'blocked');
    await sendMany(hot.batchesOf('blocked'), backlog);
    const beside = await busy('beside a blocked key');
    const one = await drain(hot, backlog, () => skipKey(hot, 'blocked', headId));
    const many = await drainOfMany(hot, Math.floor(backlog / KEYS));
    const memory = await blockMany(bench, hot, blocked);
    const stepOf = (watched: Watched) => ratio(requestsPerSecond(watched), inMemory.perSecond);
    return {
      phases: [...Object.values(costs), alone, beside],
      goals: [
        ...costGoals(costs),
        atMost('p99 of 200 busy keys, beside a blocked one ÷ alone', 2, '×', p99Of(beside, alone)),
        atMost('next request after the success of the head: p50', 5, 'ms', inMemory.stepMs.p50),
        atMost('next request after the success of the head: p99', 50, 'ms', inMemory.stepMs.p99),
        atLeast('drain of one key ÷ one key in memory', 0.7, '×', stepOf(one)),
        atMost('memory of the services beside blocked keys', 1.05, '×', memory),
      ],
      tables: [
        {
          title: 'Requests per second',
          rows: {
            'one key, in memory': { 'requests/s': inMemory.perSecond },
            [`${backlog} of one key, stored`]: { 'requests/s': requestsPerSecond(one) },
            [`the same of ${KEYS} keys`]: { 'requests/s': requestsPerSecond(many) },
          },
          notes: [],
        },
      ],
    };
  },
});

type Costs = Awaited<ReturnType<typeof measureCosts>>;

/** Messages without a key, with one that has no effect, with keys that are all different, and with ten of a key. */
async function measureCosts(
  bench: Bench,
  plain: Awaited<ReturnType<Bench['openEndpoints']>>,
  seconds: number,
) {
  const fieldsOf = (): object => ({ ordering: 'block' });
  const ordered = await bench.openEndpoints({ count: plain.webhookIds.length, fieldsOf });
  const { client, signal } = bench;
  let keys = 0;
  const nextKey = (): string => `key-${(keys += 1)}`;
  const keyed = ({ webhookIds }: Pick<typeof plain, 'webhookIds'>): Load => ({
    endpoints: webhookIds.length,
    signal,
    send: (endpoint) =>
      client.sendToWebhook(requiredAt(webhookIds, endpoint, 'webhook'), nextKey()),
  });
  const closed = (name: string, load: Load) =>
    bench.measure({ name, load: () => closedLoop(load, { connections: CONNECTIONS, seconds }) });
  const first = requiredAt(ordered.webhookIds, 0, 'webhook');
  const sendBatch = (targets: readonly number[]) =>
    client.sendBatch(
      targets.map(() => first),
      nextKey(),
    );
  const inBatches = (name: string) =>
    bench.measure({
      name,
      load: () =>
        closedBatches(
          { endpoints: 1, signal, size: A_KEY, sendBatch },
          { connections: 8, seconds },
        ),
    });
  return {
    none: await closed('no key', plain.load),
    unused: await closed('a key, and ordering none', keyed(plain)),
    distinct: await closed('keys all different, and ordering block', keyed(ordered)),
    again: await closed('no key, again', plain.load),
    batches: await inBatches(`${A_KEY} of a key in a batch, to one webhook`),
  };
}

const p99Of = (one: Phase, other: Phase): number | null =>
  ratio(one.endToEndMs.p99, other.endToEndMs.p99);

/** The middle of both phases without a key: a machine warms up and slows down meanwhile. */
function costGoals({ none, again, unused, distinct }: Costs): Goal[] {
  const cpu = middle(none.cpuSecondsPer1000, again.cpuSecondsPer1000);
  const delivered = middle(none.deliveredPerSecond, again.deliveredPerSecond);
  const accept = middle(none.acceptMs.p50, again.acceptMs.p50);
  const endToEnd = middle(none.endToEndMs.p99, again.endToEndMs.p99);
  return [
    atMost('CPU: a key and none ÷ no key', 1.01, '×', ratio(unused.cpuSecondsPer1000, cpu)),
    atMost('CPU: keys all different ÷ no key', 1.2, '×', ratio(distinct.cpuSecondsPer1000, cpu)),
    atLeast('delivered/s: the same', 0.9, '×', ratio(distinct.deliveredPerSecond, delivered)),
    atMost('accept p50: the same', 1.5, '×', ratio(distinct.acceptMs.p50, accept)),
    atMost('end to end p99: the same', 1.5, '×', ratio(distinct.endToEndMs.p99, endToEnd)),
  ];
}

const middle = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? null : (one + other) / 2;

type Ordered = Awaited<ReturnType<typeof openOrdered>>;

/** Opens a webhook with `block`, at whose endpoint a key is blocked by one refused attempt. */
async function openOrdered(bench: Bench) {
  const watch = watchRequests(bench.signal);
  const refusing = { isOn: false };
  const { webhookIds } = await bench.openEndpoints({
    count: 1,
    note: (messageId, endpoint) => {
      watch.note(messageId, endpoint);
      bench.arrivals.note(messageId, endpoint);
    },
    behaviourOf: () => (refusing.isOn ? 'fails' : 'answers'),
    fieldsOf: () => ({ ordering: 'block', finalStatusCodes: [500] }),
  });
  const id = requiredAt(webhookIds, 0, 'webhook');
  const { client, signal } = bench;
  return {
    ...watch,
    id,
    refusing,
    signal,
    api: new Posthorn(bench.stack.credentials),
    send: (key: string) => client.sendToWebhook(id, key),
    batchesOf: (key: string) => ({
      size: BATCH,
      signal,
      sendBatch: (targets: readonly number[]) =>
        client.sendBatch(
          targets.map(() => id),
          key,
        ),
    }),
  };
}

const busyKeys = ({ signal }: Bench, { send }: Ordered): Load => {
  let n = 0;
  return { endpoints: 1, signal, send: () => send(`busy-${(n += 1) % KEYS}`) };
};

/** Messages of one key, one request after the other. The step is from a success to the next request. */
async function measureHotKey({ measure, stack, signal }: Bench, hot: Ordered, seconds: number) {
  const opsUrl = stack.opsUrlOf('dispatcher');
  const steps = async () =>
    metricBy(await readMetrics(opsUrl), 'posthorn_sequence_step_seconds_bucket', 'le');
  const before = await steps();
  const watch = hot.start();
  const load: Load = { endpoints: 1, signal, send: () => hot.send('hot') };
  await measure({
    name: 'one hot key',
    load: () => closedLoop(load, { connections: 16, seconds }),
  });
  const after = await steps();
  return { perSecond: requestsPerSecond(watch.end()), stepMs: quantilesMs(before, after) };
}

/** The upper bounds of the buckets that have the quantiles. */
function quantilesMs(before: Readonly<Record<string, number>>, after: typeof before) {
  const counts = Object.entries(after)
    .map(([le, count]) => ({
      le: Number(le.replace('+Inf', 'Infinity')),
      count: count - (before[le] ?? 0),
    }))
    .sort((one, other) => one.le - other.le);
  const total = counts.at(-1)?.count ?? 0;
  const at = (share: number): number | null => {
    const found = total > 0 && counts.find(({ count }) => count >= total * share);
    return found ? rounded(found.le * 1_000) : null;
  };
  return { p50: at(0.5), p99: at(0.99) };
}

/** Blocks a key by a message that is refused. Returns the id of its delivery. */
async function blockKey(hot: Ordered, key: string): Promise<string> {
  hot.refusing.isOn = true;
  await hot.send(key);
  for (;;) {
    for await (const { orderingKey, state, headDeliveryId } of hot.api.webhooks.orderingKeys(
      hot.id,
    )) {
      if (orderingKey !== key || state !== 'blocked') continue;
      hot.refusing.isOn = false;
      return headDeliveryId;
    }
    await wait(POLL_MS, undefined, { signal: hot.signal });
  }
}

const skipKey = ({ api, id }: Ordered, orderingKey: string, deliveryId: string) =>
  api.webhooks.skipOrderingKey(id, { orderingKey, deliveryId });

/** Frees what waits, and watches until all of it was requested. */
async function drain(hot: Ordered, count: number, free: () => Promise<unknown>): Promise<Watched> {
  const watch = hot.start();
  await free();
  await watch.untilRequested(count);
  return watch.end();
}

/** The same of a backlog of many keys, which are freed together. */
async function drainOfMany(hot: Ordered, each: number): Promise<Watched> {
  const keys = Array.from({ length: KEYS }, (_, n) => `many-${n}`);
  hot.refusing.isOn = true;
  await Promise.all(keys.map((key) => hot.send(key)));
  await untilBlocked(hot, KEYS);
  hot.refusing.isOn = false;
  for (const key of keys) await sendMany(hot.batchesOf(key), each);
  return drain(hot, each * KEYS, () => hot.api.webhooks.update(hot.id, { ordering: 'skip' }));
}

/** The API counts no further. */
const MOST_COUNTED = 1_000;

async function untilBlocked({ api, id, signal }: Ordered, count: number): Promise<void> {
  const wanted = Math.min(count, MOST_COUNTED);
  while ((await api.webhooks.get(id)).blockedKeys < wanted) {
    await wait(POLL_MS, undefined, { signal });
  }
}

/** Blocks this many keys. Returns the resident memory of the services, after ÷ before. */
async function blockMany({ measure, signal }: Bench, hot: Ordered, count: number) {
  await hot.api.webhooks.update(hot.id, { ordering: 'block' });
  let n = 0;
  const load: Load = { endpoints: 1, signal, send: () => hot.send(`memory-${(n += 1)}`) };
  const one = (name: string, messages: number) =>
    measure({ name, load: () => closedLoop(load, { connections: CONNECTIONS, messages }) });
  const before = await one('before keys are blocked', count);
  hot.refusing.isOn = true;
  const after = await one('keys are blocked', count);
  await untilBlocked(hot, count);
  hot.refusing.isOn = false;
  return ratio(servicesMiB(after), servicesMiB(before));
}
