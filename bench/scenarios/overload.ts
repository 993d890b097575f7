import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import type { Phase } from '../measure/measure-phase.ts';
import { createTimeLeft, type TimeLeft } from '../measure/time-left.ts';
import { overloadColumns, overloadTables } from '../report/overload-report.ts';
import { type Bench, defineScenario, type Outcome } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from '../warm-up.ts';
import { openMany, sendToEach } from './many-endpoints.ts';
import { measureBacklog } from './overload-backlog.ts';
import { overloadGoals } from './overload-goals.ts';
import { loadHotEndpoint, loadLargePayloads, loadWithConnections } from './overload-loads.ts';
import { measureBaseline, restUntilBack } from './overload-rest.ts';
import type { OverloadRun } from './overload-run.ts';
import { CROWD, HOT_ENDPOINTS } from './overload-sizes.ts';
import { type OverloadWatch, watchOverload } from './overload-watch.ts';

const OPTIONS = {
  warmup: { default: 20, meaning: 'seconds of closed loop before anything is measured' },
  idle: { default: 60, meaning: 'seconds without load after it: the memory to begin with' },
  endpoints: LOAD_OPTIONS.endpoints,
  seconds: { default: 30, meaning: 'seconds of each load on few endpoints' },
  records: { default: 1_000_000, meaning: 'records of the backlog' },
  drain: { default: 420, meaning: 'seconds that the backlog may take at most' },
  many: { default: 100_000, meaning: 'endpoints of the wave, one message each' },
  failing: { default: 1, meaning: 'percent of those that answer 500' },
  large: { default: 20, meaning: 'seconds of the largest payloads' },
  'large-rate': { default: 100, meaning: 'of them per second' },
  rest: { default: 180, meaning: 'seconds for the memory to come back, at most' },
  minutes: { default: 19, meaning: 'of the run: what is late shortens drain, wave and rest' },
};

type Values = Record<keyof typeof OPTIONS, number>;

/** When all goes as it should: the wave, the largest payloads and the rest. */
const AFTER_CREATION_SECONDS = 300;
/** The same, and the creation of 100,000 webhooks. */
const AFTER_BACKLOG_SECONDS = 500;
const CREATION_SECONDS = 300;
const WAVE_SECONDS = 120;
const PATIENCE_MS = 45_000;

export const overload = defineScenario({
  summary:
    'more than it can take, under the memory limits of the pods: stays in bounds, comes back',
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
  const many = await loadWithConnections(deps, load, CROWD);
  const hot: Phase[] = [];
  for (const endpoint of HOT_ENDPOINTS) hot.push(await loadHotEndpoint(deps, endpoint));
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
    restUntilBack(bench, baseline, time.atMost(rest, 0)),
  );
  return { connections: { few, many }, hot, backlog, wave, large, rest: restRun };
}

/** Their creation is part of it: it is a load of the gateway. */
function runWave({ bench, watch, time }: RunDeps, { many, failing }: Values): Promise<Phase> {
  return watch.during(`wave over ${many} new endpoints`, async () => {
    const creationSeconds = time.atMost(CREATION_SECONDS, AFTER_CREATION_SECONDS);
    const timeOver = AbortSignal.timeout(creationSeconds * 1_000);
    const enough = AbortSignal.any([bench.signal, timeOver]);
    const opened = await openMany(bench, { endpoints: many, failing, enough });
    const created = opened.load.webhookIds.length;
    if (created < many) bench.log(`${created} of them were created in ${creationSeconds} s`);
    return sendToEach(bench, opened, { patienceMs: PATIENCE_MS, seconds: WAVE_SECONDS });
  });
}

function outcomeOf(bench: Bench, run: OverloadRun, wanted: Values): Outcome {
  const { connections, hot, wave, large, backlog, samples } = run;
  const memory = SERVICES.map((service) => ({ service, samples: samples[service] }));
  return {
    phases: [connections.few, connections.many, ...hot, wave, large],
    goals: overloadGoals(run, wanted),
    tables: overloadTables(run, bench.stack.limits),
    extra: { memory, memoryOfPhases: run.phases, rest: [run.rest], backlog: [backlog] },
    columns: overloadColumns(run),
    isWhole: !backlog.hasStalled,
  };
}
