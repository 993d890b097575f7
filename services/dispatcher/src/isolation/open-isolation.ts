import { setTimeout as wait } from 'node:timers/promises';
import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import {
  ANNOUNCED_WITHIN_MS,
  createAttemptLeases,
  type AttemptLeases,
} from '../once/attempt-leases.ts';
import type { DispatcherConfig } from '../config.ts';
import type { SharedState } from '../open-shared-state.ts';
import { createBusyClock, type BusyClock } from './endpoint/busy-clock.ts';
import { CIRCUIT_BYTES, createCircuits, type Circuits } from './circuits/circuits.ts';
import { createDefer, type Defer } from './defer-attempt.ts';
import { createIsolationMetrics, watchIsolation } from './isolation-metrics.ts';
import { createMoveToSlowLane, type MoveToSlowLane } from './move-to-slow-lane.ts';
import { openQueues } from './queues/open-queues.ts';
import { ENDPOINT_BYTES, MAX_IDLE_ENDPOINTS, type Queues } from './queues/queues.ts';
import { createRecordMemory, type RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import { createTellFlows } from './tell-flows.ts';
import { createOverloadWatch, type OverloadWatch } from './watch-overload.ts';

/** What keeps endpoints and companies apart, and where their attempts go meanwhile. */
export interface Isolation {
  queues: Queues;
  memory: RecordMemory;
  leases: AttemptLeases;
  defer: Defer;
  moveToSlowLane: MoveToSlowLane;
  /** False while what is under work fills the memory, or more places are wanted than there are. */
  mayRead: () => boolean;
  /** The same for the slow lane, which has places of its own. */
  mayReadSlowLane: () => boolean;
  /** To be awaited before the first record of new partitions is worked on. */
  takeOver: () => Promise<void>;
}

interface Parts extends Pick<OpenRecordLog, 'log' | 'topics'> {
  shared: SharedState;
  budgets: MemoryBudgets;
}

type Context = ServiceContext<DispatcherConfig>;

const MIB = 1_048_576;
const QUEUES_EVERY_MS = 100;
/** The resolution of the busy clock: less than a busy turn of the event loop. */
const CLOCK_EVERY_MS = 20;
const OVERLOAD_EVERY_MS = 250;
const LEASES_EVERY_MS = 50;
const TELL_EVERY_MS = 1_000;

export function openIsolation(
  context: Context,
  { log, topics, shared, budgets }: Parts,
): Isolation {
  const { config, registry } = context;
  const memory = createRecordMemory(config.RECORD_MEMORY_MIB * MIB);
  const clock = createBusyClock(CLOCK_EVERY_MS, monotonicMs);
  const circuits = openCircuits(context, shared);
  const overload = createOverloadWatch(monotonicMs);
  const queues = openQueues(context, { shared, memory, clock, circuits, overload });
  const leases = createAttemptLeases({ running: shared.runningAttempts, monotonicMs, wait });
  const metrics = createIsolationMetrics(registry);
  watchIsolation(registry, { queues, circuits, limit: placesOf(config) });
  watchMemory(context, { budgets, memory, circuits, queues });
  keepTicking(context, { queues, circuits, leases, clock, overload, shared });
  const takeOver = (): Promise<unknown> =>
    Promise.all([circuits.takeOver(), takeOverHolds(shared, queues)]);
  shared.onReady(() => void takeOver());
  return {
    queues,
    memory,
    leases,
    defer: createDefer({
      records: log,
      deferredByDelayMs: topics.deferredByDelayMs,
      count: metrics.countDeferral,
      nowMs: systemClockMs,
    }),
    moveToSlowLane: createMoveToSlowLane({
      records: log,
      slowLaneTopic: topics.slowLane,
      count: metrics.countSlowLane,
    }),
    mayRead: () => memory.hasRoom() && !queues.isFull(),
    mayReadSlowLane: memory.hasRoom,
    takeOver: async () => {
      await Promise.all([takeOver(), wait(ANNOUNCED_WITHIN_MS)]);
    },
  };
}

function placesOf({ MAX_IN_FLIGHT, SLOW_LANE_CONCURRENCY }: DispatcherConfig): number {
  return MAX_IN_FLIGHT + SLOW_LANE_CONCURRENCY;
}

function monotonicMs(): number {
  return performance.now();
}

function openCircuits({ config, logger }: Context, { openCircuits }: SharedState): Circuits {
  return createCircuits({
    logger,
    shared: openCircuits,
    resetMs: config.CIRCUIT_RESET_MS,
    maxCircuits: Math.floor((config.CIRCUIT_MEMORY_MIB * MIB) / CIRCUIT_BYTES),
    nowMs: systemClockMs,
  });
}

/** Without Redis nothing is known of the pauses that a former owner was asked for. */
async function takeOverHolds({ endpointFlows }: SharedState, queues: Queues): Promise<void> {
  const held = await endpointFlows.readHeld().catch(() => null);
  if (!held) return;
  const nowMs = systemClockMs();
  queues.inheritHolds(new Map([...held].map(([id, untilMs]) => [id, untilMs - nowMs])));
}

interface Watched {
  budgets: MemoryBudgets;
  memory: RecordMemory;
  circuits: Circuits;
  queues: Queues;
}

function watchMemory({ config }: Context, { budgets, memory, circuits, queues }: Watched): void {
  budgets.add('records', config.RECORD_MEMORY_MIB * MIB, memory.usedBytes);
  budgets.add('circuits', config.CIRCUIT_MEMORY_MIB * MIB, () => {
    const { closed, open, half_open: halfOpen } = circuits.count();
    return (closed + open + halfOpen) * CIRCUIT_BYTES;
  });
  budgets.add(
    'endpoints',
    MAX_IDLE_ENDPOINTS * ENDPOINT_BYTES,
    () => queues.size() * ENDPOINT_BYTES,
  );
}

interface Ticking {
  queues: Queues;
  circuits: Circuits;
  leases: AttemptLeases;
  clock: BusyClock;
  overload: OverloadWatch;
  shared: SharedState;
}

function keepTicking(
  { config, lifecycle }: Context,
  { queues, circuits, leases, clock, overload, shared }: Ticking,
): void {
  const flows = createTellFlows({
    endpoints: queues.endpoints,
    flows: shared.endpointFlows,
    startConcurrency: config.ENDPOINT_CONCURRENCY,
    nowMs: systemClockMs,
    monotonicMs,
  });
  const timers = [
    setInterval(clock.tick, CLOCK_EVERY_MS),
    setInterval(measureLoop(overload.tick), OVERLOAD_EVERY_MS),
    setInterval(queues.tick, QUEUES_EVERY_MS),
    setInterval(leases.tick, LEASES_EVERY_MS),
    setInterval(flows.tick, TELL_EVERY_MS),
  ];
  lifecycle.onStop('isolation', () => {
    for (const timer of timers) clearInterval(timer);
    leases.tick();
    circuits.stop();
  });
}

/** Tells, at each call, how busy the event loop was since the one before. */
function measureLoop(tell: (busyShare: number) => void): () => void {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    tell(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  };
}
