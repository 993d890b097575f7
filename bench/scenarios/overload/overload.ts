import { MAX_BODY_BYTES } from '@posthorn/domain/message.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import { openIngestSource } from '../ingest-source.ts';
import { closedBatches, type LoadRecord, openLoop } from '../../load/loops.ts';
import type { Phase } from '../../measure/phase.ts';
import { type Bench, defineScenario, type Endpoints } from '../../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, measureSingles, openMany, warmUp } from '../flows.ts';
import { measureBacklog } from './backlog.ts';
import { HOT_ENDPOINTS, MANY_CONNECTIONS, overloadGoals, overloadTables } from './report.ts';
import { createTimeLeft, measureBaseline, restUntilRecovered, type TimeLeft } from './rest.ts';
import { type OverloadWatch, watchOverload } from './watch.ts';

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
/** With the JSON around it, a payload of this size is just below the largest body that the API accepts. */
const LARGE_PAYLOAD_BYTES = MAX_BODY_BYTES - 256;
const LARGE_TAKES_MS = 1_000;
const BATCH_CLIENTS = 8;

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
    const run = { ...measured, ...(await watch.stop()) };
    const { connections, hot, batches, wave, large, backlog, rest } = run;
    const memory = Object.entries(run.samples).map(([service, samples]) => ({ service, samples }));
    return {
      phases: [connections.few, connections.many, ...hot, batches, wave, large],
      goals: overloadGoals(run, values),
      tables: overloadTables(run, bench.stack.limits),
      extra: { memory, memoryOfPhases: run.phases, rest: [rest], backlog: [backlog] },
      isComplete: !backlog.hasStalled,
    };
  },
});

interface RunDeps {
  bench: Bench;
  watch: OverloadWatch;
  time: TimeLeft;
}

async function runPhases(deps: RunDeps, values: Values) {
  const { bench, watch, time } = deps;
  const { warmup, idle, endpoints, seconds, records, drain, batch, ingested, rest } = values;
  const measure = (name: string, load: () => Promise<LoadRecord>): Promise<Phase> =>
    watch.during(name, () => bench.measure({ name, patienceMs: PATIENCE_MS, load }));
  const targets = await bench.openEndpoints({ count: endpoints });
  const baseline = await watch.during('start: warm-up, then idle', async () => {
    await warmUp(bench, targets.load, warmup);
    return measureBaseline(bench, idle);
  });
  const closed = (connections: number): Promise<Phase> =>
    watch.during(`closed loop, ${connections} connections`, () =>
      measureSingles(bench, targets.load, { seconds, connections, patienceMs: PATIENCE_MS }),
    );
  const connections = { few: await closed(CONNECTIONS), many: await closed(MANY_CONNECTIONS) };
  const hot: Phase[] = [];
  for (const { takesMs, ratePerSecond } of HOT_ENDPOINTS) {
    const { load } = await bench.openEndpoints({ count: 1, behaviourOf: answersAfter(takesMs) });
    const name = `one endpoint that takes ${takesMs} ms, ${ratePerSecond}/s`;
    hot.push(await measure(name, () => openLoop(load, { ratePerSecond, seconds })));
  }
  // Nearly as large as a request may be: 1 MiB (docs/contract.md C22).
  const batches = await measure(`batches of ${batch}, closed loop of ${BATCH_CLIENTS}`, () =>
    closedBatches(targets.batchesOf(batch), { connections: BATCH_CLIENTS, seconds }),
  );
  await watch.during(`${ingested} records of a topic`, () => ingest(bench, targets, ingested));
  const backlog = await watch.during(`backlog of ${records} records`, () =>
    measureBacklog(bench, {
      endpoints,
      records,
      seconds: time.atMost(drain, AFTER_BACKLOG_SECONDS),
    }),
  );
  const wave = await runWave(deps, values);
  const large = await loadLargePayloads(bench, values, measure);
  const resting = () => restUntilRecovered(bench, baseline, time.atMost(rest, 0));
  return {
    connections,
    hot,
    batches,
    backlog,
    wave,
    large,
    rest: await watch.during('rest', resting),
  };
}

const answersAfter = (answersAfterMs: number) => () => ({ answersAfterMs });

async function ingest(bench: Bench, { webhookIds }: Endpoints, records: number): Promise<void> {
  const source = await openIngestSource(bench, webhookIds);
  const { delivered } = await source.drain(records);
  await source.close();
  bench.log(`${delivered} of ${records} records of a topic were delivered`);
}

/** The creation of the endpoints is part of the wave: it is load for the gateway. */
function runWave({ bench, watch, time }: RunDeps, { many, failing }: Values): Promise<Phase> {
  return watch.during(`wave over ${many} new endpoints`, async () => {
    const creationSeconds = time.atMost(CREATION_SECONDS, AFTER_CREATION_SECONDS);
    const enough = AbortSignal.any([bench.signal, AbortSignal.timeout(creationSeconds * 1_000)]);
    const sendToEach = await openMany(bench, { endpoints: many, failing, enough });
    return sendToEach({ patienceMs: PATIENCE_MS, seconds: WAVE_SECONDS });
  });
}

/** Sends the largest payloads, to endpoints that take a second for each. */
async function loadLargePayloads(
  bench: Bench,
  { endpoints, large: seconds, 'large-rate': ratePerSecond }: Values,
  measure: (name: string, load: () => Promise<LoadRecord>) => Promise<Phase>,
): Promise<Phase> {
  const client = createGatewayClient(bench.stack.credentials, {
    connections: CONNECTIONS,
    payloadBytes: LARGE_PAYLOAD_BYTES,
  });
  const wanted = { count: endpoints, behaviourOf: answersAfter(LARGE_TAKES_MS), client };
  const { load } = await bench.openEndpoints(wanted);
  const name = `payloads of ${LARGE_PAYLOAD_BYTES} bytes, ${ratePerSecond}/s, ${CONNECTIONS} connections`;
  try {
    return await measure(name, () => openLoop(load, { ratePerSecond, seconds }));
  } finally {
    await client.close();
  }
}
