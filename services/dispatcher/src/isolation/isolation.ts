import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import {
  createRecordMemory,
  type MemoryBudgets,
  type RecordMemory,
} from '@posthorn/platform/memory/memory-budgets.ts';
import type { ReportIncident } from '@posthorn/platform/records/operator-incidents.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Companies } from '../companies.ts';
import type { DispatcherConfig } from '../config.ts';
import { createDefer, createMoveToSlowLane, type Defer, type MoveToSlowLane } from '../defer.ts';
import { createStallFreeClock, type StallFreeClock } from '../outages.ts';
import type { PayloadMemory } from '../payloads.ts';
import type { SharedState } from '../start.ts';
import { circuitViewOf, CLOSED } from './circuit-rules.ts';
import {
  CIRCUIT_BYTES,
  type CircuitEndpoint,
  type Circuits,
  type CircuitsDeps,
  createCircuits,
} from './circuits.ts';
import { type Candidate, maxWaitMsAt } from './gate.ts';
import { INHERITED_BYTES, MAX_INHERITED } from './host-pace.ts';
import {
  createFlowReporter,
  createIsolationMetrics,
  MAX_REPORTED,
  REPORTED_BYTES,
  watchIsolation,
} from './isolation-metrics.ts';
import { ENDPOINT_BYTES, MAX_IDLE_ENDPOINTS, type QueueLimits, Queues } from './queues.ts';

/** What keeps endpoints and companies apart, and where their attempts go meanwhile. */
export interface Isolation {
  queues: Queues;
  memory: RecordMemory;
  defer: Defer;
  moveToSlowLane: MoveToSlowLane;
  /** False while the records under work fill their memory budget, or attempts wait for all places. */
  mayRead: () => boolean;
  /** The same for the slow lane, which has its own places. */
  mayReadSlowLane: () => boolean;
  /**
   * Reads the open circuits and holds of former owners of these partitions, which are all that this process has now. To
   * be awaited before the first record of newly assigned ones is worked on.
   */
  takeOver: (partitions: ReadonlySet<number>) => Promise<void>;
}

interface Parts extends Pick<OpenRecordLog, 'records' | 'topics' | 'partitionOf'> {
  shared: SharedState;
  budgets: MemoryBudgets;
  companies: Pick<Companies, 'suspendedForMs'>;
  payloads: PayloadMemory;
  report: ReportIncident;
}

type Context = ServiceContext<DispatcherConfig>;

const QUEUES_EVERY_MS = 100;
/** The resolution of the stall-free clock: shorter than a busy iteration of the event loop. */
const CLOCK_EVERY_MS = 20;
const OVERLOAD_EVERY_MS = 250;
const FLOWS_EVERY_MS = 1_000;

export function openIsolation(context: Context, parts: Parts): Isolation {
  const { records, topics, partitionOf, shared, budgets, report } = parts;
  const { config, registry, keepTrying } = context;
  const memory = createRecordMemory(memoryShare('dispatcher', 'records', config.MEMORY_MIB));
  const clock = createStallFreeClock(CLOCK_EVERY_MS, monotonicClockMs);
  const circuits = openCircuits(context, shared, {
    report,
    partitionOf: (webhookId) => partitionOf(topics.messageCreated, webhookId),
  });
  const overload = createOverloadWatch(monotonicClockMs);
  const queues = openQueues({ ...parts, config, memory, clock, circuits, overload });
  const metrics = createIsolationMetrics(registry);
  watchIsolation(registry, { queues, circuits, limit: placesOf(config) });
  watchMemory({ config, budgets, memory, circuits, queues });
  keepTicking(context, { budgets, queues, circuits, clock, overload, shared });
  shared.onReady(() => {
    void circuits.restore();
    void takeOverHolds(shared, queues);
  });
  return {
    queues,
    memory,
    defer: createDefer({
      records,
      keepTrying,
      deferredByDelayMs: topics.deferredByDelayMs,
      count: metrics.countDeferral,
      nowMs: systemClockMs,
    }),
    moveToSlowLane: createMoveToSlowLane({
      records,
      keepTrying,
      slowLaneTopic: topics.slowLane,
      count: metrics.countSlowLane,
    }),
    mayRead: () => memory.hasRoom() && !queues.isFull('fast'),
    // Otherwise its backlog would fill the memory, and stop the reading for endpoints that are not slow.
    mayReadSlowLane: () => memory.hasRoom() && !queues.isFull('slow'),
    async takeOver(partitions) {
      await Promise.all([circuits.own(partitions), takeOverHolds(shared, queues)]);
    },
  };
}

function placesOf({ MAX_IN_FLIGHT }: DispatcherConfig): number {
  return MAX_IN_FLIGHT + SLOW_LANE_CONCURRENCY;
}

function openCircuits(
  { config, logger }: Context,
  { openCircuits }: SharedState,
  parts: Pick<CircuitsDeps, 'report' | 'partitionOf'>,
): Circuits {
  return createCircuits({
    ...parts,
    logger,
    shared: openCircuits,
    resetMs: config.CIRCUIT_RESET_MS,
    maxCircuits: Math.floor(
      memoryShare('dispatcher', 'circuits', config.MEMORY_MIB) / CIRCUIT_BYTES,
    ),
    nowMs: systemClockMs,
  });
}

/** Without Redis, nothing is known of the holds that former owners were asked for. */
async function takeOverHolds({ endpointFlows }: SharedState, queues: Queues): Promise<void> {
  const held = await endpointFlows.takeOverHolds().catch(() => null);
  if (!held) return;
  const nowMs = systemClockMs();
  const left = [...held].map(([id, { untilMs, urlHash }]) => {
    return [id, { forMs: untilMs - nowMs, urlHash }] as const;
  });
  queues.inheritHolds(new Map(left));
}

interface Watched {
  config: DispatcherConfig;
  budgets: MemoryBudgets;
  memory: RecordMemory;
  circuits: Circuits;
  queues: Queues;
}

function watchMemory({ config, budgets, memory, circuits, queues }: Watched): void {
  budgets.add('records', memoryShare('dispatcher', 'records', config.MEMORY_MIB), memory.usedBytes);
  budgets.add('circuits', memoryShare('dispatcher', 'circuits', config.MEMORY_MIB), () => {
    const { closed, open, half_open: halfOpen } = circuits.count();
    return (closed + open + halfOpen) * CIRCUIT_BYTES;
  });
  budgets.add(
    'endpoints',
    MAX_IDLE_ENDPOINTS * ENDPOINT_BYTES,
    () => queues.size() * ENDPOINT_BYTES,
  );
  budgets.add(
    'inherited',
    2 * MAX_INHERITED * INHERITED_BYTES,
    () => (queues.inheritedHolds() + circuits.inherited()) * INHERITED_BYTES,
  );
}

interface Ticking {
  budgets: MemoryBudgets;
  queues: Queues;
  circuits: Circuits;
  clock: StallFreeClock;
  overload: OverloadWatch;
  shared: SharedState;
}

function keepTicking(
  { config, lifecycle }: Context,
  { budgets, queues, circuits, clock, overload, shared }: Ticking,
): void {
  const flows = createFlowReporter({
    endpoints: () => queues.endpoints(),
    flows: shared.endpointFlows,
    startConcurrency: config.ENDPOINT_CONCURRENCY,
    ceiling: concurrencyCeilingOf(config),
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  budgets.add('flows', MAX_REPORTED * REPORTED_BYTES, () => flows.size() * REPORTED_BYTES);
  const tickers = [
    startTicker(CLOCK_EVERY_MS, clock.tick),
    startTicker(OVERLOAD_EVERY_MS, measureLoop(overload.tick)),
    startTicker(QUEUES_EVERY_MS, () => {
      queues.tick();
    }),
    startTicker(FLOWS_EVERY_MS, flows.tick),
  ];
  lifecycle.onStop('isolation', () => {
    for (const ticker of tickers) ticker.stop();
    circuits.stop();
  });
}

/** Returns a function that reports how busy the event loop was since it was last called. */
function measureLoop(report: (busyShare: number) => void): () => void {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    report(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  };
}

/** Attempts under way at once in the slow lane of one dispatcher. */
const SLOW_LANE_CONCURRENCY = 500;

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

function openQueues({
  config,
  shared,
  memory,
  clock,
  circuits,
  overload,
  companies,
  payloads,
}: QueueParts): Queues {
  return new Queues({
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
function concurrencyCeilingOf({
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

interface OverloadWatch {
  isOverloaded: () => boolean;
  /**
   * To be called often, with the share of the time since the last call in which the event loop was
   * busy, 0 to 1.
   */
  tick: (busyShare: number) => void;
}

/** Time in which the process was preempted counts as busy, so a machine short of CPU reaches this, too. */
const BUSY_FROM = 0.9;
/** An overload comes in waves. The queues that one of them left are not the fault of the endpoints. */
const LASTS_MS = 2_000;

/** Watches whether this process itself is the bottleneck. */
export function createOverloadWatch(monotonicMs: () => number): OverloadWatch {
  let untilMs = -Infinity;
  return {
    isOverloaded: () => monotonicMs() < untilMs,
    tick(busyShare) {
      if (busyShare >= BUSY_FROM) untilMs = monotonicMs() + LASTS_MS;
    },
  };
}
