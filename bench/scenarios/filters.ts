import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { setTimeout as wait } from 'node:timers/promises';
import { createGatewayClient, type GatewayClient } from '../load/gateway-client.ts';
import { closedLoop, type Load, openLoop } from '../load/loops.ts';
import { metricIn, readMetrics } from '../measure/metrics.ts';
import type { Phase } from '../measure/phase.ts';
import { atMost, type Goal, ratio } from '../report/report.ts';
import { type Bench, defineScenario, type Endpoints } from '../scenario.ts';
import { LOAD_OPTIONS, warmUp } from './flows.ts';
import { type Ordinary, responseTable, sendOrdinary } from './greedy/greedy.ts';

/** A payload of about 1 KB, as a shop sends it. */
const ORDER = { amount: 250, currency: 'EUR', shop: 'berlin', text: 'x'.repeat(940) };
const MATCHING = {
  payload: { amount: { $gte: 100 }, currency: 'EUR', shop: { $startsWith: 'b' } },
};
const NARROW = 100;
/** Of the wide app, so many webhooks match. */
const MATCHES = 10;
const WIDE_MESSAGES = 3;
const EVENT_TYPE = 'order.placed';

export const filters = defineScenario({
  summary:
    'filters and checks of payloads: what acceptance costs with them, and what others notice',
  options: {
    warmup: LOAD_OPTIONS.warmup,
    seconds: { default: 20, meaning: 'seconds of each phase' },
    rate: { default: 200, meaning: 'messages per second to one webhook, with checks and without' },
    targets: { default: 10_000, meaning: 'webhooks of the wide app (the quotas)' },
  },
  async run(bench, { warmup, seconds, rate, targets }) {
    const { webhookIds, load } = await bench.openEndpoints({ count: 1 });
    const company = await bench.stack.createCompany('Filters');
    const client = createGatewayClient(company, { payload: ORDER });
    const filtering: Filtering = { ...bench, client, company };
    try {
      await warmUp(bench, load, warmup);
      const narrow = await measureNarrow(filtering, seconds);
      const checked = await measureChecks(filtering, { seconds, rate });
      const probe = (name: string) =>
        sendOrdinary(bench, requiredAt(webhookIds, 0, 'webhook'), { name, seconds });
      const alone = await probe('alone');
      const wide = await measureWide(filtering, targets, () =>
        probe('beside messages to a wide app, of which ten webhooks match'),
      );
      const hostile = await measureHostile(bench, () => probe('beside a hostile company'));
      const p99 = (what: string, limit: number, beside: Ordinary): Goal[] =>
        Object.entries(alone).map(([name, of]) =>
          atMost(`${name}, ${what}: p99 ÷ alone`, limit, '×', ratio(beside[name]?.p99, of.p99)),
        );
      return {
        phases: [...narrow, ...checked, ...wide.phases],
        goals: [
          atMost('CPU of the gateway, 100 filters ÷ none', 1.1, '×', gatewayRatio(narrow)),
          atMost('CPU of the gateway, checks ÷ none', 1.25, '×', gatewayRatio(checked)),
          atMost(
            'accept p99, checks ÷ none',
            1.2,
            '×',
            ratio(checked[1].acceptMs.p99, checked[0].acceptMs.p99),
          ),
          atMost('CPU of a message to ten of a wide app ÷ to all', 0.05, '×', wide.cpu),
          ...p99('beside ten of a wide app', 1.2, wide.probed),
          ...p99('beside a hostile company', 2, hostile.probed),
          atMost('longest slice of the gateway beside it', 15, 'ms', hostile.sliceMs),
        ],
        tables: [
          responseTable({ alone, wide: wide.probed, hostile: hostile.probed }),
          {
            title: 'Responses to the hostile company',
            rows: { count: hostile.answers },
            notes: [],
          },
        ],
      };
    } finally {
      await client.close();
    }
  },
});

type Both = [Phase, Phase];

const gatewayRatio = ([without, with_]: Both): number | null =>
  ratio(with_.parts.gateway?.cpuSecondsPer1000, without.parts.gateway?.cpuSecondsPer1000);

/** Of the company that has the filters, beside whose requests those of the usual one are measured. */
interface Filtering extends Bench {
  company: Awaited<ReturnType<Bench['stack']['createCompany']>>;
}

/** Messages to an app; they count as arrived at its first webhook. */
function toApp({ client, signal, company }: Filtering, appId: string, eventType?: string): Load {
  const send = () => client.sendToAppAs(company.apiKey, appId, eventType);
  return { endpoints: 1, signal, send };
}

async function measureNarrow(bench: Filtering, seconds: number): Promise<Both> {
  const { client } = bench;
  const openApp = (fieldsOf: () => object): Promise<Endpoints> =>
    bench.openEndpoints({ count: NARROW, fieldsOf, client });
  const plain = await openApp(() => ({}));
  const filtered = await openApp(() => ({ filter: MATCHING }));
  const of = ({ appId }: Endpoints, name: string) =>
    bench.measure({
      name: `4 messages/s to ${NARROW} webhooks, ${name}`,
      load: () => openLoop(toApp(bench, appId), { ratePerSecond: 4, seconds }),
    });
  await of(filtered, 'to warm up');
  return [
    await of(plain, 'without filters'),
    await of(filtered, 'with filters of three conditions'),
  ];
}

/** A schema of 60 objects that the payload meets. */
function schemaOf60(): object {
  const text = { type: 'string', maxLength: 1_000 };
  const more = Object.entries(Array.from({ length: 54 }, () => text)).map(
    ([n, each]) => [`field${n}`, each] as const,
  );
  const amount = { type: 'number', minimum: 0 };
  const own = { amount, currency: text, shop: text, text };
  const properties = { ...own, ...Object.fromEntries(more) };
  return { type: 'object', required: Object.keys(own), properties };
}

async function measureChecks(
  bench: Filtering,
  { seconds, rate }: { seconds: number; rate: number },
): Promise<Both> {
  const api = new Posthorn(bench.company);
  const { id: projectId } = await api.projects.create({ name: 'checked' });
  const { id: appId } = await api.apps.create({ name: 'checked', projectId });
  await bench.openEndpoints({ count: 1, appId, client: bench.client });
  const of = (name: string) =>
    bench.measure({
      name: `${rate}/s to one webhook, ${name}`,
      load: () => openLoop(toApp(bench, appId, EVENT_TYPE), { ratePerSecond: rate, seconds }),
    });
  await api.eventTypes.create(projectId, { name: EVENT_TYPE, schema: schemaOf60() as never });
  const without = await of('unchecked');
  await api.projects.update(projectId, { eventTypePolicy: 'validated' });
  await of('to warm up the checks');
  return [without, await of('validated')];
}

async function measureWide(bench: Filtering, targets: number, probe: () => Promise<Ordinary>) {
  const all = await openWide(bench, targets, () => ({}), targets);
  const few = await openWide(
    bench,
    targets,
    (n) => ({ filter: { payload: { shop: n < MATCHES ? 'berlin' : `shop-${n}` } } }),
    MATCHES,
  );
  const phases = [
    await all.measure(`messages to all of ${targets} webhooks`),
    await few.measure(`messages to ${MATCHES} of ${targets} webhooks by their filters`),
  ];
  const [toAll, toFew] = phases;
  const sending = new AbortController();
  const beside = openLoop(
    { ...few.load, signal: sending.signal },
    { ratePerSecond: 1, seconds: 600 },
  );
  const probed = await probe();
  sending.abort();
  await beside;
  return { phases, probed, cpu: ratio(toFew?.cpuSecondsPer1000, toAll?.cpuSecondsPer1000) };
}

/** A phase of it ends when every webhook that matches has every message. */
async function openWide(
  bench: Filtering,
  targets: number,
  fieldsOf: (n: number) => object,
  matching: number,
) {
  let arrived = 0;
  const { appId } = await bench.openEndpoints({
    count: targets,
    ports: 64,
    fieldsOf,
    client: bench.client,
    note: (messageId, endpoint) => {
      arrived += 1;
      bench.arrivals.note(messageId, endpoint);
    },
  });
  const load = toApp(bench, appId);
  const measure = (name: string) => {
    const wanted = arrived + matching * WIDE_MESSAGES;
    return bench.measure({
      name,
      load: async () => {
        const record = await closedLoop(load, { connections: 1, messages: WIDE_MESSAGES });
        while (arrived < wanted) await wait(50, undefined, { signal: bench.signal });
        return record;
      },
    });
  };
  return { load, measure };
}

const LEVELS = 60;
/** Each level refers to the next one twice. */
const doubling = Object.fromEntries(
  Array.from({ length: LEVELS }, (_, n) => {
    const next = n + 1 === LEVELS ? [{}] : Array(2).fill({ $ref: `#/$defs/level${n + 1}` });
    return [`level${n}`, { allOf: next }] as const;
  }),
);
/** Each is accepted, and takes as long as a payload lets it. */
const HOSTILE_SCHEMAS: Record<string, object> = {
  pattern: { properties: { text: { pattern: '^(a+)+$' } } },
  unique: { properties: { list: { uniqueItems: true } } },
  doubling: { properties: { deep: { $ref: '#/$defs/level0' } }, $defs: doubling },
};
/** Each condition looks at every element of `few`, together nearly the 10,000 steps that a filter has, and none is met. */
const HOSTILE_FILTER = {
  $or: Array.from({ length: 12 }, (_, n) => ({ payload: { few: -n - 1 } })),
};
const HOSTILE_PAYLOAD = {
  deep: {},
  text: `${'a'.repeat(40)}!`,
  list: Array.from({ length: 30_000 }, (_, n) => n),
  few: Array.from({ length: 800 }, (_, n) => n),
};
const HOSTILE_PER_SECOND = 4;

/** Another company sends the worst payloads to the worst schemas, and to 100 webhooks with the worst filter. */
async function measureHostile({ stack, signal, log }: Bench, probe: () => Promise<Ordinary>) {
  const { baseUrl, apiKey } = await stack.createCompany('Hostile');
  const api = new Posthorn({ baseUrl, apiKey });
  const client: GatewayClient = createGatewayClient(
    { baseUrl, apiKey },
    { payload: HOSTILE_PAYLOAD },
  );
  const openCompanyApp = async (eventTypePolicy: 'open' | 'validated', webhooks: number) => {
    const { id: projectId } = await api.projects.create({ name: 'hostile', eventTypePolicy });
    const { id: appId } = await api.apps.create({ name: 'hostile', projectId });
    const urls = Array.from({ length: webhooks }, (_, n) => `http://127.0.0.1:9/${n}`);
    await client.createWebhooks(appId, urls, signal, () => ({ filter: HOSTILE_FILTER }));
    return { projectId, appId };
  };
  const checked = await openCompanyApp('validated', 0);
  for (const [name, schema] of Object.entries(HOSTILE_SCHEMAS)) {
    await api.eventTypes.create(checked.projectId, { name, schema: schema as never });
  }
  const filtered = await openCompanyApp('open', NARROW);
  const sending = new AbortController();
  const names = Object.keys(HOSTILE_SCHEMAS);
  let n = 0;
  const load: Load = {
    endpoints: 1,
    signal: sending.signal,
    send: () => {
      n += 1;
      const isChecked = n % 2 === 0;
      const { appId } = isChecked ? checked : filtered;
      return client.sendToAppAs(
        apiKey,
        appId,
        isChecked ? names[(n / 2) % names.length] : undefined,
      );
    },
  };
  const gateway = () => readMetrics(stack.opsUrlOf('gateway'));
  await gateway();
  log('Measuring: a hostile company');
  const attack = openLoop(load, { ratePerSecond: HOSTILE_PER_SECOND, seconds: 600 });
  const probed = await probe();
  const longest = metricIn(await gateway(), 'nodejs_eventloop_lag_max_seconds');
  sending.abort();
  const { sent, refused } = await attack;
  await client.close();
  const sliceMs = longest === null ? null : Math.round(longest * 1_000);
  return { probed, sliceMs, answers: { accepted: sent.length, ...refused } };
}
