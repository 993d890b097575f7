import { setTimeout as wait } from 'node:timers/promises';
import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import { ANNOUNCED_WITHIN_MS, createAttemptLeases, type AttemptLeases } from './attempt-leases.ts';
import { createCircuitBreakers, type CircuitBreakers } from './circuit-breakers.ts';
import type { DispatcherConfig } from './config.ts';
import { watchLoad, type DispatcherMetrics } from './dispatcher-metrics.ts';
import { createEndpointLanes, type EndpointLanes } from './endpoint-lanes.ts';
import type { SharedState } from './open-shared-state.ts';
import { createPace, type Pace } from './pace-webhook.ts';
import { createPassCircuit, type PassCircuit } from './pass-circuit.ts';
import { createPutOff, type PutOff } from './put-off.ts';
import { createSpillOver, type SpillOver } from './spill-over.ts';

/** What keeps endpoints apart: queues, circuits, rate limits, and where their records go meanwhile. */
export interface Isolation {
  lanes: EndpointLanes;
  circuits: CircuitBreakers;
  leases: AttemptLeases;
  putOff: PutOff;
  circuit: PassCircuit;
  pace: Pace;
  spillOver: SpillOver;
  /** To be awaited before the first record of new partitions is worked on. */
  takeOver: () => Promise<void>;
}

interface Parts extends Pick<OpenRecordLog, 'log' | 'topics'> {
  metrics: DispatcherMetrics;
  shared: SharedState;
}

const SLOWNESS_EVERY_MS = 100;
const LEASES_EVERY_MS = 50;

export function openIsolation(
  context: ServiceContext<DispatcherConfig>,
  { log, topics, metrics, shared }: Parts,
): Isolation {
  const { config, logger, registry } = context;
  const { deferrals, spills } = metrics;
  const { parkedByDelayMs, slowLane: slowLaneTopic } = topics;
  const monotonicMs = (): number => performance.now();
  const clocks = { nowMs: systemClockMs, monotonicMs };
  const circuits = createCircuitBreakers({
    ...{ ...clocks, logger, shared: shared.openCircuits, resetMs: config.CIRCUIT_RESET_MS },
  });
  const lanes = createEndpointLanes({
    perEndpoint: config.ENDPOINT_CONCURRENCY,
    ...{ fast: config.MAX_IN_FLIGHT, slow: config.SLOW_LANE_CONCURRENCY },
  });
  const leases = createAttemptLeases({ running: shared.runningAttempts, monotonicMs, wait });
  const putOff = createPutOff({ log, parkedByDelayMs, nowMs: systemClockMs });
  const limit = config.MAX_IN_FLIGHT + config.SLOW_LANE_CONCURRENCY;
  watchLoad(registry, { lanes, circuits, limit });
  keepTicking(context, { lanes, circuits, leases });
  shared.onReady(() => void circuits.takeOver());
  return {
    ...{ lanes, circuits, leases, putOff },
    takeOver: async () => {
      await Promise.all([circuits.takeOver(), wait(ANNOUNCED_WITHIN_MS)]);
    },
    circuit: createPassCircuit({
      ...{ ...clocks, circuits, putOff, wait, deferrals: deferrals.circuit },
      longestDelayMs: Math.max(...parkedByDelayMs.keys()),
    }),
    pace: createPace({
      ...{ ...clocks, putOff, wait, deferrals: deferrals.rateLimit },
      shortestDelayMs: Math.min(...parkedByDelayMs.keys()),
    }),
    spillOver: createSpillOver({
      ...{ ...clocks, log, slowLaneTopic, lanes, putOff, spills, deferrals: deferrals.backlog },
    }),
  };
}

function keepTicking(
  { lifecycle }: ServiceContext<DispatcherConfig>,
  { lanes, circuits, leases }: Pick<Isolation, 'lanes' | 'circuits' | 'leases'>,
): void {
  const timers = [
    setInterval(lanes.tick, SLOWNESS_EVERY_MS),
    setInterval(leases.tick, LEASES_EVERY_MS),
  ];
  lifecycle.onStop('isolation', () => {
    for (const timer of timers) clearInterval(timer);
    leases.tick();
    circuits.stop();
  });
}
