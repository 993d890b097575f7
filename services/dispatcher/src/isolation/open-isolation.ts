import { startTicker } from '@posthorn/platform/async/ticker.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createRecordMemory, type RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ReportIncident } from '@posthorn/platform/operator-events/report-incidents.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { DispatcherConfig } from '../config.ts';
import type { Companies } from '../load/open-companies.ts';
import type { PayloadMemory } from '../load/payload-memory.ts';
import type { SharedState } from '../open-shared-state.ts';
import {
  CIRCUIT_BYTES,
  createCircuits,
  type Circuits,
  type CircuitsDeps,
} from './circuits/circuits.ts';
import { createDefer, type Defer } from './defer-attempt.ts';
import { createStallFreeClock, type StallFreeClock } from './endpoint/stall-free-clock.ts';
import { createIsolationMetrics, watchIsolation } from './isolation-metrics.ts';
import { createMoveToSlowLane, type MoveToSlowLane } from './move-to-slow-lane.ts';
import { ENDPOINT_BYTES, MAX_IDLE_ENDPOINTS } from './queues/forget-idle.ts';
import { concurrencyCeilingOf, openQueues, SLOW_LANE_CONCURRENCY } from './queues/open-queues.ts';
import type { Queues } from './queues/queues.ts';
import { createFlowReporter, MAX_REPORTED, REPORTED_BYTES } from './report-flows.ts';
import { INHERITED_BYTES, MAX_INHERITED } from './endpoint/inherited-holds.ts';
import { createOverloadWatch, type OverloadWatch } from './watch-overload.ts';

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
    endpoints: queues.endpoints,
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
    startTicker(QUEUES_EVERY_MS, queues.tick),
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
