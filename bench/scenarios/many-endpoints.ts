import { setTimeout as wait } from 'node:timers/promises';
import { closedLoop, type Load } from '../load/loops.ts';
import { memoryFigures, watchMemory } from '../measure/watch-memory.ts';
import type { Phase, PhaseSpec } from '../measure/phase.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

/**
 * Few ports with distinct paths: each webhook is an endpoint of its own, as behind a gateway of a large
 * company.
 */
const PORTS = 64;
const WARM_UP_ENDPOINTS = 20;
const SAMPLE_EVERY_MS = 1_000;

export const manyEndpoints = defineScenario({
  summary: '100,000 endpoints, one message each, 1 % failing: memory of the dispatcher',
  options: {
    warmup: LOAD_OPTIONS.warmup,
    endpoints: { default: 100_000, meaning: 'endpoints, one webhook and one message each' },
    failing: { default: 1, meaning: 'percent of the endpoints that respond with 500' },
    rest: { default: 60, meaning: 'seconds to watch the memory after the load' },
  },
  async run(bench, { warmup, endpoints, failing, rest }) {
    await warmUp(bench, await bench.openEndpoints({ count: WARM_UP_ENDPOINTS }), { warmup });
    const many = await openMany(bench, { endpoints, failing });
    // The service that keeps queues and circuits for each endpoint.
    const service = 'dispatcher';
    const memory = await watchMemory(bench, { service, everyMs: SAMPLE_EVERY_MS });
    const phase = await sendToEach(bench, many);
    bench.log(`Watching the memory for ${rest} s`);
    await wait(rest * 1_000, undefined, { signal: bench.signal }).catch(() => undefined);
    const samples = await memory.stop();
    return {
      phases: [phase],
      goals: [],
      extra: { dispatcher: memoryFigures(samples), memory: samples },
    };
  },
});

export interface ManyEndpoints {
  load: Load;
  /** False for endpoints that fail. */
  isCounted: (endpoint: number) => boolean;
}

export interface ManySpec {
  endpoints: number;
  /** Percent of the endpoints that respond with 500. */
  failing: number;
  /** Stops their creation early. */
  enough?: AbortSignal;
}

export async function openMany(
  { log, openEndpoints }: Bench,
  { endpoints, failing, enough }: ManySpec,
): Promise<ManyEndpoints> {
  const every = Math.max(1, Math.round(100 / failing));
  const isCounted = (endpoint: number): boolean => endpoint % every !== 0;
  log(`Creating ${endpoints} webhooks (100,000 take some minutes)`);
  const load = await openEndpoints({
    count: endpoints,
    ports: Math.min(PORTS, endpoints),
    behaviourOf: (endpoint) => (isCounted(endpoint) ? 'answers' : 'fails'),
    enough,
  });
  return { load, isCounted };
}

/** The load ends after `seconds`, even when some endpoints have no message yet. */
export function sendToEach(
  { measure }: Bench,
  { load, isCounted }: ManyEndpoints,
  { seconds = Infinity, ...patience }: Pick<PhaseSpec, 'patienceMs'> & { seconds?: number } = {},
): Promise<Phase> {
  const messages = load.endpoints;
  return measure({
    name: `one message to each of ${messages} endpoints`,
    isCounted,
    ...patience,
    load: () => closedLoop(load, { connections: CONNECTIONS, messages, seconds }),
  });
}
