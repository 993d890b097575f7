import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { DispatcherConfig } from '../../config.ts';
import type { SharedState } from '../../open-shared-state.ts';
import type { BusyClock } from '../endpoint/busy-clock.ts';
import { circuitViewOf, CLOSED } from '../circuits/circuit-view.ts';
import type { Circuits } from '../circuits/circuits.ts';
import { maxWaitMsAt } from '../gate/max-wait.ts';
import type { OverloadWatch } from '../watch-overload.ts';
import { createQueues, type Queues } from './queues.ts';
import type { Candidate } from './queue-state.ts';
import type { RecordMemory } from '@posthorn/platform/memory/record-memory.ts';

/** An endpoint that fails all it gets goes down to one attempt at once. */
const CONCURRENCY_FLOOR = 1;

/** About 5 ms of work; the slow lane has a part of its own, so that no rush keeps it waiting. */
const BEGINS_A_TURN = { fast: 16, slow: 4 };

interface QueueParts {
  shared: SharedState;
  memory: RecordMemory;
  clock: BusyClock;
  circuits: Circuits;
  overload: OverloadWatch;
}

export function openQueues(
  { config }: Pick<ServiceContext<DispatcherConfig>, 'config'>,
  { shared, memory, clock, circuits, overload }: QueueParts,
): Queues {
  const { ENDPOINT_CONCURRENCY: start, ENDPOINT_CONCURRENCY_MAX, MAX_IN_FLIGHT } = config;
  // However well an endpoint does, half of the places are left for others.
  const ceiling = Math.max(1, Math.min(ENDPOINT_CONCURRENCY_MAX, Math.ceil(MAX_IN_FLIGHT / 2)));
  return createQueues({
    limits: {
      perEndpoint: { floor: CONCURRENCY_FLOOR, start: Math.min(start, ceiling), ceiling },
      fast: MAX_IN_FLIGHT,
      slow: config.SLOW_LANE_CONCURRENCY,
      beginsATurn: BEGINS_A_TURN,
    },
    maxWaitMs: () => maxWaitMsAt(memory.usedShare()),
    isOverloaded: overload.isOverloaded,
    circuitOf(candidate) {
      const obstacle = circuits.obstacle(endpointOf(candidate), candidate.trigger);
      return obstacle
        ? circuitViewOf(obstacle, candidate.deferredSinceMs, systemClockMs())
        : CLOSED;
    },
    permit: (candidate) => circuits.permit(endpointOf(candidate)),
    onHold: (webhookId, forMs) => {
      shared.endpointFlows.held(webhookId, Math.ceil(systemClockMs() + forMs));
    },
    nowMs: systemClockMs,
    monotonicMs: () => performance.now(),
    busyMs: clock.nowMs,
    inNextTurn: (act) => void setImmediate(act),
    wakeAfter(ms, wake) {
      const timer = setTimeout(wake, Math.ceil(ms));
      return () => {
        clearTimeout(timer);
      };
    },
  });
}

function endpointOf({ webhookId, url }: Candidate): { id: string; url: string } {
  return { id: webhookId, url };
}
