import { setTimeout as wait } from 'node:timers/promises';
import { closedLoop } from '../load/loops.ts';
import { rounded } from '../measure/percentiles.ts';
import type { Column } from '../report/chart.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { readMetric } from '../stack/read-metric.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from '../warm-up.ts';

/** Few listening ports, distinct paths: each webhook is an endpoint of its own, as at a large customer's gateway. */
const PORTS = 64;
const WARM_UP_ENDPOINTS = 20;
const SAMPLE_EVERY_MS = 1_000;

interface MemorySample {
  second: number;
  residentMiB: number | null;
  heapUsedMiB: number | null;
  timers: number | null;
}

export const manyEndpoints = defineScenario({
  summary: '100,000 endpoints, one message each, 1 % failing: memory of the dispatcher',
  options: {
    warmup: LOAD_OPTIONS.warmup,
    endpoints: { default: 100_000, meaning: 'endpoints, one webhook and one message each' },
    failing: { default: 1, meaning: 'percent of the endpoints that answer 500' },
    rest: { default: 60, meaning: 'seconds to watch the memory after the load' },
  },
  async run(bench, { warmup, endpoints, failing, rest }) {
    await warmUp(bench, await bench.openEndpoints({ count: WARM_UP_ENDPOINTS }), { warmup });
    const every = Math.max(1, Math.round(100 / failing));
    const isCounted = (endpoint: number): boolean => endpoint % every !== 0;
    bench.log(`Creating ${endpoints} webhooks (100,000 take some minutes)`);
    const load = await bench.openEndpoints({
      count: endpoints,
      ports: Math.min(PORTS, endpoints),
      behaviourOf: (endpoint) => (isCounted(endpoint) ? 'answers' : 'fails'),
    });
    const memory = watchMemory(bench);
    const phase = await bench.measure({
      name: `one message to each of ${endpoints} endpoints`,
      isCounted,
      load: () => closedLoop(load, { connections: CONNECTIONS, messages: endpoints }),
    });
    bench.log(`Watching the memory for ${rest} s`);
    await wait(rest * 1_000, undefined, { signal: bench.signal }).catch(() => undefined);
    const { samples, extra } = memory.stop();
    return { phases: [phase], goals: [], extra, columns: [memoryColumn(samples)] };
  },
});

/** The dispatcher's, once a second: it keeps queues and breakers for each endpoint. */
function watchMemory({ usage, stack }: Bench) {
  const samples: MemorySample[] = [];
  const startedAtMs = performance.now();
  const look = async (): Promise<void> => {
    const second = rounded((performance.now() - startedAtMs) / 1_000);
    const residentMiB = inMiB(usage.read().dispatcher?.residentBytes);
    const labels = 'type="Timeout"';
    const [timers, heapUsed] = await Promise.all([
      readMetric(stack.dispatcherOpsUrl, 'nodejs_active_resources', labels),
      readMetric(stack.dispatcherOpsUrl, 'nodejs_heap_size_used_bytes'),
    ]);
    samples.push({ second, residentMiB, heapUsedMiB: inMiB(heapUsed), timers });
  };
  const timer = setInterval(() => void look(), SAMPLE_EVERY_MS);
  return {
    stop() {
      clearInterval(timer);
      return { samples, extra: { dispatcher: summaryOf(samples), memory: samples } };
    },
  };
}

function summaryOf(samples: readonly MemorySample[]) {
  const [first, last] = [samples[0], samples.at(-1)];
  const highest = (of: (sample: MemorySample) => number | null): number =>
    Math.max(0, ...samples.map((sample) => of(sample) ?? 0));
  return {
    residentMiBBefore: first?.residentMiB ?? null,
    residentMiBHighest: highest(({ residentMiB }) => residentMiB),
    residentMiBAfter: last?.residentMiB ?? null,
    heapUsedMiBHighest: highest(({ heapUsedMiB }) => heapUsedMiB),
    heapUsedMiBAfter: last?.heapUsedMiB ?? null,
    timersBefore: first?.timers ?? null,
    timersHighest: highest(({ timers }) => timers),
    timersAfter: last?.timers ?? null,
  };
}

function inMiB(bytes: number | null | undefined): number | null {
  return bytes === null || bytes === undefined ? null : rounded(bytes / 2 ** 20);
}

function memoryColumn(samples: readonly MemorySample[]): Column {
  const panel = (title: string, of: (sample: MemorySample) => number | null) => ({
    title,
    lines: [
      { name: 'dispatcher', points: samples.map((each) => [each.second, of(each)] as const) },
    ],
  });
  return {
    title: 'the dispatcher until the end of the rest',
    notes: [],
    panels: [
      panel('resident memory, MiB', ({ residentMiB }) => residentMiB),
      panel('heap used, MiB', ({ heapUsedMiB }) => heapUsedMiB),
      panel('active timers', ({ timers }) => timers),
    ],
  };
}
