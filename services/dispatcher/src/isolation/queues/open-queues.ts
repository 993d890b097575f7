import type { RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { DispatcherConfig } from '../../config.ts';
import type { SharedState } from '../../open-shared-state.ts';
import type { Circuits, CircuitEndpoint } from '../circuits/circuits.ts';
import { circuitViewOf, CLOSED } from '../circuits/how-long-circuit-defers.ts';
import type { Companies } from '../../load/open-companies.ts';
import type { PayloadMemory } from '../../load/payload-memory.ts';
import type { StallFreeClock } from '../endpoint/stall-free-clock.ts';
import { maxWaitMsAt } from '../gate/how-long-attempts-wait.ts';
import type { OverloadWatch } from '../watch-overload.ts';
import type { Candidate } from './admission.ts';
import type { QueueLimits } from './queue-state.ts';
import { createQueues, type Queues } from './queues.ts';

/** Attempts under way at once in the slow lane of one dispatcher. */
export const SLOW_LANE_CONCURRENCY = 500;

/** An endpoint that fails every attempt goes down to one at a time. */
const CONCURRENCY_FLOOR = 1;

/** About 5 ms of work. The slow lane has a share of its own, so that a burst does not keep it waiting. */
const STARTS_PER_LOOP = { fast: 16, slow: 4 };

interface QueueParts {
  config: DispatcherConfig;
  shared: Pick<SharedState, 'endpointFlows'>;
  memory: RecordMemory;
  clock: StallFreeClock;
  circuits: Circuits;
  overload: OverloadWatch;
  companies: Pick<Companies, 'suspendedForMs'>;
  payloads: PayloadMemory;
}

export function openQueues({
  config,
  shared,
  memory,
  clock,
  circuits,
  overload,
  companies,
  payloads,
}: QueueParts): Queues {
  return createQueues({
    limits: limitsOf(config),
    maxWaitMs: () => maxWaitMsAt(memory.usedShare()),
    isOverloaded: overload.isOverloaded,
    onArrival: (candidate) => {
      circuits.refresh(endpointOf(candidate));
    },
    circuitOf(candidate) {
      const block = circuits.blockOf(endpointOf(candidate), candidate.trigger);
      return block ? circuitViewOf(block, candidate.deferredSinceMs, systemClockMs()) : CLOSED;
    },
    suspendedForMs: companies.suspendedForMs,
    payloads,
    beginAttempt: (candidate) => circuits.beginAttempt(endpointOf(candidate)),
    onHold: (webhookId, url, forMs) => {
      shared.endpointFlows.reportHold(webhookId, url, Math.ceil(systemClockMs() + forMs));
    },
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
    stallFreeMs: clock.nowMs,
    inNextLoop: (act) => void setImmediate(act),
    wakeAfter(ms, wake) {
      const timer = setTimeout(wake, Math.ceil(ms));
      return () => {
        clearTimeout(timer);
      };
    },
  });
}

/** However well an endpoint does, half of the places are left for others. */
export function concurrencyCeilingOf({
  ENDPOINT_CONCURRENCY_MAX,
  MAX_IN_FLIGHT,
}: DispatcherConfig): number {
  return Math.max(1, Math.min(ENDPOINT_CONCURRENCY_MAX, Math.ceil(MAX_IN_FLIGHT / 2)));
}

function limitsOf(config: DispatcherConfig): QueueLimits {
  const ceiling = concurrencyCeilingOf(config);
  const start = Math.min(config.ENDPOINT_CONCURRENCY, ceiling);
  return {
    perEndpoint: { floor: CONCURRENCY_FLOOR, start, ceiling },
    perHostPerSecond: config.HOST_ATTEMPTS_PER_SECOND,
    fast: config.MAX_IN_FLIGHT,
    slow: SLOW_LANE_CONCURRENCY,
    startsPerLoop: STARTS_PER_LOOP,
  };
}

function endpointOf({ webhookId, companyId, url }: Candidate): CircuitEndpoint {
  return { id: webhookId, companyId, url };
}
