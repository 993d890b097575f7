import { MAX_BODY_BYTES } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import type { Phase } from '../../measure/phase.ts';
import { overloadTables } from './report.ts';
import { type Bench, defineScenario, type ScenarioResult, type Targets } from '../../scenario.ts';
import { openIngestSource } from '../ingest.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from '../warm-up.ts';
import { openMany, sendToEach } from '../many-endpoints.ts';
import { measureBacklog } from './backlog.ts';
import {
  overloadGoals,
  type OverloadRun,
  MANY_CONNECTIONS,
  HOT_ENDPOINTS,
  type HotEndpoint,
} from './goals.ts';
import { createTimeLeft, measureBaseline, restUntilRecovered, type TimeLeft } from './rest.ts';
import { type OverloadWatch, watchOverload } from './watch.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import {
  type BatchLoad,
  closedBatches,
  closedLoop,
  type Load,
  openLoop,
} from '../../load/loops.ts';

const OPTIONS = {
  warmup: { default: 20, meaning: 'seconds of closed loop before the measurements' },
  idle: { default: 60, meaning: 'seconds without load after it, for the memory at the start' },
  endpoints: LOAD_OPTIONS.endpoints,
  seconds: { default: 30, meaning: 'seconds of each load on few endpoints' },
  records: { default: 1_000_000, meaning: 'records of the backlog' },
  batch: {
    default: 900,
    meaning: 'messages of 1 KB in a batch, for a closed loop of eight clients',
  },
  ingested: { default: 60_000, meaning: 'records that are ingested from a topic' },
  drain: { default: 420, meaning: 'seconds that the backlog may take at most' },
  many: { default: 100_000, meaning: 'endpoints of the wave, one message each' },
  failing: { default: 1, meaning: 'percent of those that respond with 500' },
  large: { default: 20, meaning: 'seconds of the largest payloads' },
  'large-rate': { default: 100, meaning: 'largest payloads per second' },
  rest: { default: 180, meaning: 'seconds for the memory to recover, at most' },
  minutes: { default: 19, meaning: 'minutes of the run: delays shorten drain, wave and rest' },
};

type Values = Record<keyof typeof OPTIONS, number>;

/** The usual time for the wave, the largest payloads and the rest. */
const AFTER_CREATION_SECONDS = 300;
/** The same with the creation of 100,000 webhooks. */
const AFTER_BACKLOG_SECONDS = 500;
const CREATION_SECONDS = 300;
const WAVE_SECONDS = 120;
/** The run is limited: what arrives later than this after the end of a load counts as missing. */
const PATIENCE_MS = 45_000;

export const overload = defineScenario({
  summary:
    'more load than the services can take, under the memory limits of the pods: bounded memory, recovery',
  ingests: true,
  options: OPTIONS,
  isLimited: true,
  async run(bench, values) {
    const time = createTimeLeft(values.minutes * 60, () => performance.now());
    const watch = await watchOverload(bench);
    const measured = await runPhases({ bench, watch, time }, values);
    return outcomeOf(bench, { ...measured, ...(await watch.stop()) }, values);
  },
});

interface RunDeps {
  bench: Bench;
  watch: OverloadWatch;
  time: TimeLeft;
}

async function runPhases({ bench, watch, time }: RunDeps, values: Values) {
  const { warmup, idle, endpoints, seconds, records, drain, rest } = values;
  const load = await bench.openEndpoints({ count: endpoints });
  const baseline = await watch.during('start: warm-up, then idle', async () => {
    await warmUp(bench, load, { warmup });
    return measureBaseline(bench, idle);
  });
  const deps = { bench, watch, seconds };
  const few = await loadWithConnections(deps, load, CONNECTIONS);
  const many = await loadWithConnections(deps, load, MANY_CONNECTIONS);
  const hot: Phase[] = [];
  for (const endpoint of HOT_ENDPOINTS) hot.push(await loadHotEndpoint(deps, endpoint));
  const targets = await bench.openTargets({ count: endpoints });
  const batches = await loadBatches(deps, targets, values.batch);
  await watch.during(`${values.ingested} records of a topic`, () =>
    ingestRecords(bench, targets, values.ingested),
  );
  const drainSeconds = time.atMost(drain, AFTER_BACKLOG_SECONDS);
  const backlog = await watch.during(`backlog of ${records} records`, () =>
    measureBacklog(bench, { endpoints, records, seconds: drainSeconds }),
  );
  const wave = await runWave({ bench, watch, time }, values);
  const large = await loadLargePayloads(
    { bench, watch, seconds: values.large },
    { endpoints, ratePerSecond: values['large-rate'] },
  );
  const restRun = await watch.during('rest', () =>
    restUntilRecovered(bench, baseline, time.atMost(rest, 0)),
  );
  return { connections: { few, many }, hot, batches, backlog, wave, large, rest: restRun };
}

/** The creation of the endpoints is part of the wave: it is load for the gateway. */
function runWave({ bench, watch, time }: RunDeps, { many, failing }: Values): Promise<Phase> {
  return watch.during(`wave over ${many} new endpoints`, async () => {
    const creationSeconds = time.atMost(CREATION_SECONDS, AFTER_CREATION_SECONDS);
    const timeOver = AbortSignal.timeout(creationSeconds * 1_000);
    const enough = AbortSignal.any([bench.signal, timeOver]);
    const opened = await openMany(bench, { endpoints: many, failing, enough });
    const created = opened.load.endpoints;
    if (created < many) bench.log(`${created} endpoints were created in ${creationSeconds} s`);
    return sendToEach(bench, opened, { patienceMs: PATIENCE_MS, seconds: WAVE_SECONDS });
  });
}

function outcomeOf(bench: Bench, run: OverloadRun, wanted: Values): ScenarioResult {
  const { connections, hot, batches, wave, large, backlog, samples } = run;
  const memory = SERVICES.map((service) => ({ service, samples: samples[service] }));
  return {
    phases: [connections.few, connections.many, ...hot, batches, wave, large],
    goals: overloadGoals(run, wanted),
    tables: overloadTables(run, bench.stack.limits),
    extra: { memory, memoryOfPhases: run.phases, rest: [run.rest], backlog: [backlog] },
    isComplete: !backlog.hasStalled,
  };
}

interface LoadDeps {
  bench: Bench;
  watch: OverloadWatch;
  seconds: number;
}

/** With the JSON around it, a payload of this size is just below the largest body that the API accepts. */
const LARGE_PAYLOAD_BYTES = MAX_BODY_BYTES - 256;
const LARGE_TAKES_MS = 1_000;
const BATCH_CLIENTS = 8;

function loadWithConnections(
  { bench, watch, seconds }: LoadDeps,
  load: Load,
  connections: number,
): Promise<Phase> {
  const name = `closed loop, ${connections} connections`;
  return watch.during(name, () =>
    bench.measure({
      name,
      patienceMs: PATIENCE_MS,
      load: () => closedLoop(load, { connections, seconds }),
    }),
  );
}

async function loadHotEndpoint(
  { bench, watch, seconds }: LoadDeps,
  { takesMs, ratePerSecond }: HotEndpoint,
): Promise<Phase> {
  const behaviourOf = () => ({ answersAfterMs: takesMs });
  const load = await bench.openEndpoints({ count: 1, behaviourOf });
  const name = `one endpoint that takes ${takesMs} ms, ${ratePerSecond}/s`;
  return watch.during(name, () =>
    bench.measure({
      name,
      patienceMs: PATIENCE_MS,
      load: () => openLoop(load, { ratePerSecond, seconds }),
    }),
  );
}

/** Nearly as large as a request may be: 1 MiB (docs/contract.md C22). */
function loadBatches(
  { bench, watch, seconds }: LoadDeps,
  { webhookIds }: Targets,
  size: number,
): Promise<Phase> {
  const { client, signal } = bench;
  const idOf = (endpoint: number): string => requiredAt(webhookIds, endpoint, 'webhook');
  const load: BatchLoad = {
    sendBatch: (endpoints) => client.sendBatch(endpoints.map(idOf)),
    size,
    endpoints: webhookIds.length,
    signal,
  };
  const name = `batches of ${size}, closed loop of ${BATCH_CLIENTS}`;
  return watch.during(name, () =>
    bench.measure({
      name,
      patienceMs: PATIENCE_MS,
      load: () => closedBatches(load, { connections: BATCH_CLIENTS, seconds }),
    }),
  );
}

async function ingestRecords(bench: Bench, { webhookIds }: Targets, records: number) {
  const source = await openIngestSource(bench, webhookIds);
  const { delivered } = await source.drain(records);
  await source.close();
  bench.log(`${delivered} of ${records} records of a topic were delivered`);
}

/** Sends the largest payloads, to endpoints that take a second for each. */
async function loadLargePayloads(
  { bench, watch, seconds }: LoadDeps,
  { endpoints, ratePerSecond }: { endpoints: number; ratePerSecond: number },
): Promise<Phase> {
  const behaviourOf = () => ({ answersAfterMs: LARGE_TAKES_MS });
  const { webhookIds } = await bench.openTargets({ count: endpoints, behaviourOf });
  const client = createGatewayClient(bench.stack.credentials, {
    connections: CONNECTIONS,
    payloadBytes: LARGE_PAYLOAD_BYTES,
  });
  const large: Load = {
    send: (endpoint) => client.sendToWebhook(requiredAt(webhookIds, endpoint, 'webhook')),
    endpoints,
    signal: bench.signal,
  };
  const name = `payloads of ${LARGE_PAYLOAD_BYTES} bytes, ${ratePerSecond}/s, ${CONNECTIONS} connections`;
  try {
    return await watch.during(name, () =>
      bench.measure({
        name,
        patienceMs: PATIENCE_MS,
        load: () => openLoop(large, { ratePerSecond, seconds }),
      }),
    );
  } finally {
    await client.close();
  }
}
