import { setTimeout as wait } from 'node:timers/promises';
import { createGatewayClient } from '../load/gateway-client.ts';
import { openIngestSource } from './ingest-source.ts';
import { HANGS } from '../load/receivers.ts';
import { closedBatches, closedLoop, type Load, openLoop } from '../load/loops.ts';
import { rounded } from '../measure/figures.ts';
import type { Phase, PhaseSpec } from '../measure/phase.ts';
import { memoryFigures, watchMemory } from '../measure/watch-memory.ts';
import { atLeast, atMost, ratio } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';

export const CONNECTIONS = 64;

/** Options of every scenario with a plain load. */
export const LOAD_OPTIONS = {
  warmup: { default: 40, meaning: 'seconds of closed loop before the measurements' },
  endpoints: { default: 20, meaning: 'endpoints, one webhook each' },
};

/** Before a rate is measured: the group commit takes some seconds to adapt to it. */
const RUN_IN_SECONDS = 5;

/**
 * Runs a closed loop in the same processes. A gateway needed 0.35 CPU seconds per 1,000 messages after 3 s and 0.21
 * after 15 s; a new broker needs three times as much as a warm one.
 */
export async function warmUp({ log, measure }: Bench, load: Load, seconds: number): Promise<void> {
  log(`Warming up for ${seconds} s`);
  const loop = { connections: CONNECTIONS, seconds };
  await measure({ name: 'warm-up', load: () => closedLoop(load, loop) });
}

/** Measures single messages in a closed loop. */
export function measureSingles(
  { measure }: Bench,
  load: Load,
  loop: { seconds: number; connections?: number; name?: string } & Pick<PhaseSpec, 'patienceMs'>,
): Promise<Phase> {
  const { seconds, connections = CONNECTIONS, patienceMs } = loop;
  return measure({
    name: loop.name ?? `closed loop, ${connections} connections`,
    ...(patienceMs !== undefined && { patienceMs }),
    load: () => closedLoop(load, { connections, seconds }),
  });
}

export const deliver = defineScenario({
  summary: 'end to end: closed loop, then two fixed rates',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of each phase' },
    rate: { default: 650, meaning: 'messages per second of the first open loop' },
    'high-rate': { default: 1_200, meaning: 'messages per second of the second open loop' },
  },
  async run(bench, { warmup, endpoints, seconds, rate, 'high-rate': highRate }) {
    const { load } = await bench.openEndpoints({ count: endpoints });
    await warmUp(bench, load, warmup);
    const atRate = async (ratePerSecond: number): Promise<Phase> => {
      await openLoop(load, { ratePerSecond, seconds: RUN_IN_SECONDS });
      const name = `open loop, ${ratePerSecond}/s`;
      return bench.measure({ name, load: () => openLoop(load, { ratePerSecond, seconds }) });
    };
    const closed = await measureSingles(bench, load, { seconds });
    const [open, high] = [await atRate(rate), await atRate(highRate)];
    const ms = ({ name }: Phase, what: string, limit: number, measured: number | null) =>
      atMost(`${name}: ${what}`, limit, 'ms', measured);
    const cpu = ({ name, cpuSecondsPer1000 }: Phase, limit: number) =>
      atMost(`${name}: CPU of all parts per 1,000 messages`, limit, 's', cpuSecondsPer1000);
    return {
      phases: [closed, open, high],
      goals: [
        atLeast('closed loop: accepted', 3_000, '/s', closed.acceptedPerSecond),
        atLeast('closed loop: delivered', 3_000, '/s', closed.deliveredPerSecond),
        ms(closed, 'accept p99', 50, closed.acceptMs.p99),
        ms(closed, 'end to end p99', 80, closed.endToEndMs.p99),
        cpu(closed, 0.5),
        ms(open, 'accept p50', 8, open.acceptMs.p50),
        ms(open, 'accept p99', 20, open.acceptMs.p99),
        ms(open, 'end to end p50', 10, open.endToEndMs.p50),
        ms(open, 'end to end p99', 25, open.endToEndMs.p99),
        cpu(open, 1.6),
        ms(high, 'end to end p50', 13, high.endToEndMs.p50),
        ms(high, 'end to end p99', 60, high.endToEndMs.p99),
      ],
    };
  },
});

export const isolation = defineScenario({
  summary: 'healthy endpoints beside endpoints that hang for 15 s',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 300, meaning: 'seconds with hanging endpoints' },
    baseline: { default: 60, meaning: 'seconds without them, measured first' },
    rate: { default: 650, meaning: 'messages per second of all endpoints together' },
    hanging: { default: 5, meaning: 'percent of the traffic that goes to hanging endpoints' },
  },
  async run(bench, { warmup, endpoints, seconds, baseline, rate, hanging }) {
    const hangingCount = Math.max(1, Math.round((endpoints * hanging) / 100));
    const healthyCount = endpoints - hangingCount;
    if (healthyCount < 1) throw new Error('No healthy endpoint is left: lower --hanging.');
    // The last endpoints hang. Each gets the same share of the traffic as a healthy one.
    const isCounted = (endpoint: number): boolean => endpoint < healthyCount;
    const { load: mixed } = await bench.openEndpoints({
      count: endpoints,
      behaviourOf: (endpoint) => (isCounted(endpoint) ? 'answers' : HANGS),
    });
    const healthy: Load = { ...mixed, endpoints: healthyCount };
    await warmUp(bench, healthy, warmup);
    // The healthy endpoints get the same rate in both phases: the hanging ones are the only difference.
    const healthyRate = (rate * healthyCount) / endpoints;
    const without = await bench.measure({
      name: `healthy endpoints alone, ${rounded(healthyRate)}/s`,
      load: () => openLoop(healthy, { ratePerSecond: healthyRate, seconds: baseline }),
    });
    const beside = await bench.measure({
      name: `the same beside ${rounded((100 * hangingCount) / endpoints)} % to hanging ones`,
      isCounted,
      load: () => openLoop(mixed, { ratePerSecond: rate, seconds }),
    });
    const p99 = ratio(beside.endToEndMs.p99, without.endToEndMs.p99);
    const delivered = rounded((100 * beside.deliveredPerSecond) / healthyRate, 2);
    return {
      phases: [without, beside],
      goals: [
        atMost('healthy end to end p99, with ÷ without', 2, '×', p99),
        atLeast('healthy deliveries per second, of those sent', 99, '%', delivered),
      ],
    };
  },
});

export const batch = defineScenario({
  summary: 'batches beside single messages: cost of a message, and the latency of single ones',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of each phase' },
    size: { default: 100, meaning: 'messages of a batch' },
    clients: { default: 8, meaning: 'clients that send batches at once, in a closed loop' },
    rate: { default: 200, meaning: 'single messages per second of another company' },
    'batch-rate': { default: 5, meaning: 'batches per second beside them' },
  },
  async run(bench, options) {
    const { warmup, endpoints, seconds, size, clients, rate, 'batch-rate': batchRate } = options;
    const { load, batchesOf } = await bench.openEndpoints({ count: endpoints });
    const client = createGatewayClient(await bench.stack.createCompany('other'));
    try {
      const other = await bench.openEndpoints({ count: 1, client });
      await warmUp(bench, load, warmup);
      const batches = (loop: { seconds: number; connections?: number; everyMs?: number }) =>
        closedBatches(batchesOf(size), { connections: clients, ...loop });
      await batches({ seconds: warmup / 2 });
      const name = `single messages, closed loop of ${CONNECTIONS}`;
      const single = await measureSingles(bench, load, { seconds, name });
      const many = await bench.measure({
        name: `batches of ${size}, closed loop of ${clients}`,
        load: () => batches({ seconds }),
      });
      const singles = () => openLoop(other.load, { ratePerSecond: rate, seconds });
      const alone = await bench.measure({
        name: `single messages of another company, ${rate}/s, alone`,
        load: singles,
      });
      const busy = await bench.measure({
        name: `the same beside ${batchRate} batches of ${size} per second`,
        load: async () => {
          const beside = { connections: 1, seconds: seconds + 2, everyMs: 1_000 / batchRate };
          return (await Promise.all([singles(), batches(beside)]))[0];
        },
      });
      const [one, other100] = [single.parts.gateway, many.parts.gateway];
      const gateway = ratio(other100?.cpuSecondsPer1000, one?.cpuSecondsPer1000);
      const all = ratio(many.cpuSecondsPer1000, single.cpuSecondsPer1000);
      const delivered = ratio(many.deliveredPerSecond, single.deliveredPerSecond);
      const p99 = ratio(busy.acceptMs.p99, alone.acceptMs.p99);
      return {
        phases: [single, many, alone, busy],
        goals: [
          atMost('CPU of the gateway for a message, batch ÷ single', 0.25, '×', gateway),
          atMost('CPU of all parts for a message, batch ÷ single', 0.5, '×', all),
          atLeast('delivered/s, batch ÷ single', 1.8, '×', delivered),
          atMost('accept p99 of single messages, beside batches ÷ alone', 1.5, '×', p99),
        ],
      };
    } finally {
      await client.close();
    }
  },
});

export const ingest = defineScenario({
  summary: 'a backlog of records of a topic: accepted and delivered per second, and their cost',
  ingests: true,
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of single messages, to compare with' },
    records: { default: 60_000, meaning: 'records of the backlog' },
  },
  async run(bench, { warmup, endpoints, seconds, records }) {
    const { load, webhookIds } = await bench.openEndpoints({ count: endpoints });
    const source = await openIngestSource(bench, webhookIds);
    await warmUp(bench, load, warmup);
    await source.drain(Math.ceil(records / 3));
    const name = `single messages, closed loop of ${CONNECTIONS}`;
    const single = await measureSingles(bench, load, { seconds, name });
    bench.log(`Measuring: ${records} records`);
    const drained = await source.drain(records);
    await source.close();
    const rowOf = (
      run: Pick<Phase, 'acceptedPerSecond' | 'deliveredPerSecond' | 'cpuSecondsPer1000' | 'parts'>,
      part: string,
    ) => ({
      'accepted/s': run.acceptedPerSecond,
      'delivered/s': run.deliveredPerSecond,
      'CPU s per 1,000': run.cpuSecondsPer1000,
      'of the gateway, or of ingestion': run.parts[part]?.cpuSecondsPer1000 ?? null,
    });
    return {
      phases: [single],
      goals: [],
      tables: [
        {
          title: 'Ingested beside single messages',
          rows: {
            'single messages': rowOf(single, 'gateway'),
            'records of a backlog': rowOf(drained, 'ingest'),
          },
          notes: [`${drained.delivered} of ${drained.records} records delivered`],
        },
      ],
      isComplete: drained.delivered === records,
    };
  },
});

export const manyEndpoints = defineScenario({
  summary: '100,000 endpoints, one message each, 1 % failing: memory of the dispatcher',
  options: {
    warmup: LOAD_OPTIONS.warmup,
    endpoints: { default: 100_000, meaning: 'endpoints, one webhook and one message each' },
    failing: { default: 1, meaning: 'percent of the endpoints that respond with 500' },
    rest: { default: 60, meaning: 'seconds to watch the memory after the load' },
  },
  async run(bench, { warmup, endpoints, failing, rest }) {
    await warmUp(bench, (await bench.openEndpoints({ count: 20 })).load, warmup);
    const sendToEach = await openMany(bench, { endpoints, failing });
    // The service that keeps queues and circuits for each endpoint.
    const memory = await watchMemory(bench, { service: 'dispatcher', everyMs: 1_000 });
    const phase = await sendToEach();
    bench.log(`Watching the memory for ${rest} s`);
    await wait(rest * 1_000, undefined, { signal: bench.signal }).catch(() => undefined);
    const samples = await memory.stop();
    const extra = { dispatcher: memoryFigures(samples), memory: samples };
    return { phases: [phase], goals: [], extra };
  },
});

/** Few ports with distinct paths: each webhook is an endpoint of its own, as behind a gateway of a large company. */
const PORTS = 64;

interface ManySpec {
  endpoints: number;
  /** Percent of the endpoints that respond with 500. */
  failing: number;
  /** Stops their creation early. */
  enough?: AbortSignal;
}

/**
 * Opens the endpoints, and returns the function that sends one message to each of them, for so many seconds even when some
 * have no message yet.
 */
export async function openMany(bench: Bench, { endpoints, failing, enough }: ManySpec) {
  const every = Math.max(1, Math.round(100 / failing));
  const isCounted = (endpoint: number): boolean => endpoint % every !== 0;
  bench.log(`Creating ${endpoints} webhooks (100,000 take some minutes)`);
  const { load } = await bench.openEndpoints({
    count: endpoints,
    ports: Math.min(PORTS, endpoints),
    behaviourOf: (endpoint) => (isCounted(endpoint) ? 'answers' : 'fails'),
    enough,
  });
  if (load.endpoints < endpoints) bench.log(`${load.endpoints} endpoints were created in time`);
  return ({
    seconds = Infinity,
    ...patience
  }: Pick<PhaseSpec, 'patienceMs'> & { seconds?: number } = {}) =>
    bench.measure({
      name: `one message to each of ${load.endpoints} endpoints`,
      isCounted,
      ...patience,
      load: () => closedLoop(load, { connections: CONNECTIONS, messages: load.endpoints, seconds }),
    });
}
