import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createRestingTicker, startTicker, type Ticker } from '@posthorn/platform/async/loop.ts';
import { type OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import {
  createRecordMemory,
  type MemoryBudgets,
  type RecordMemory,
} from '@posthorn/platform/memory/memory-budgets.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { openProvenRecords } from '@posthorn/platform/records/proven-records.ts';
import { onEachConnection, type RedisClient } from '@posthorn/platform/redis/connect.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { type DispatcherConfig, queueLimitsOf, SLOW_LANE_CONCURRENCY } from './config.ts';
import { CIRCUIT_BYTES, Circuits } from './isolation/circuits.ts';
import { maxWaitMsAt } from './isolation/gate.ts';
import {
  Handover,
  INHERITED_BYTES,
  MAX_INHERITED,
  MAX_REPORTED_BYTES,
} from './isolation/handover.ts';
import { type QueueDeps, Queues } from './isolation/queues.ts';
import { ENDPOINT_BYTES, MAX_IDLE_ENDPOINTS } from './isolation/remembered-endpoints.ts';
import { watchIsolation } from './metrics.ts';
import {
  createOverloadWatch,
  createStallFreeClock,
  measureLoop,
  type StallFreeClock,
} from './outages.ts';
import {
  createPayloadLoader,
  createPayloadMemory,
  type PayloadLoader,
  type PayloadMemory,
} from './payloads.ts';

/** The part of the dispatcher's connections that isolation uses. */
interface IsolationBase
  extends
    Pick<
      ServiceContext<DispatcherConfig>,
      'config' | 'registry' | 'lifecycle' | 'logger' | 'keepTrying'
    >,
    Pick<ReturnType<typeof openProvenRecords>, 'report'> {
  kafka: Pick<OpenRecordLog, 'topics' | 'partitionOf'>;
  db: Database;
  redis: RedisClient;
  budgets: MemoryBudgets;
  time: Pick<DatabaseTime, 'nowMs'>;
}

/** Keeps endpoints and companies apart. */
export interface Isolation {
  queues: Queues;
  /** The records under work. */
  memory: RecordMemory;
  /**
   * Reads the open circuits and pauses of former owners of these partitions, which are all that this process has now. To
   * be awaited before the first record of newly assigned ones is worked on.
   */
  takeOver: (partitions: ReadonlySet<number>) => Promise<void>;
  /** Drops the cached payload of a message. */
  forgetPayload: (messageId: string) => void;
}

const QUEUES_EVERY_MS = 100;
/** The resolution of the stall-free clock: shorter than a busy iteration of the event loop. */
const CLOCK_EVERY_MS = 20;
const OVERLOAD_EVERY_MS = 250;
const FLOWS_EVERY_MS = 1_000;

/** Starts the queues, the circuits and what they hand over. They end when the service stops. */
export function startIsolation(base: IsolationBase): Isolation {
  const { config, registry, lifecycle, redis } = base;
  const memory = createRecordMemory(memoryShare('dispatcher', 'records', config.MEMORY_MIB));
  const clock = createRestingClock(() => queues.hasRequests());
  const overload = createOverloadWatch(monotonicClockMs);
  const circuits = createCircuits(base);
  const handover = createHandover(base, () => queues);
  const payloads = openPayloads(base);
  const queues = new Queues({
    limits: queueLimitsOf(config),
    maxWaitMs: () => maxWaitMsAt(memory.usedShare()),
    isOverloaded: overload.isOverloaded,
    onArrival: (candidate) => void circuits.refresh(candidate),
    circuitOf: (candidate) => circuits.viewOf(candidate),
    payloads: payloads.memory,
    beginAttempt: (candidate) => circuits.beginAttempt(candidate),
    handover,
    stallFreeMs: clock.nowMs,
    nowMs: base.time.nowMs,
    ...CLOCKS,
  });
  const limit = config.MAX_IN_FLIGHT + SLOW_LANE_CONCURRENCY;
  watchIsolation(registry, { queues, circuits, limit });
  budgetIsolation(base, { memory, circuits, queues, handover });
  const tickers = [
    clock,
    startTicker(OVERLOAD_EVERY_MS, measureLoop(overload.tick)),
    ...startTickers(queues, handover),
  ];
  lifecycle.onStop('isolation', () => {
    for (const ticker of tickers) ticker.stop();
    circuits.stop();
  });
  onEachConnection(redis, () => {
    void circuits.restore();
    void handover.restore();
  });
  return {
    queues,
    memory,
    async takeOver(partitions) {
      await Promise.all([circuits.own(partitions), handover.own(partitions)]);
    },
    forgetPayload: payloads.forget,
  };
}

/** Returns the stall-free clock, which rests while it is not needed. */
function createRestingClock(isNeeded: () => boolean): Ticker & Pick<StallFreeClock, 'nowMs'> {
  const clock = createStallFreeClock(CLOCK_EVERY_MS, monotonicClockMs);
  const { wake, stop } = createRestingTicker(CLOCK_EVERY_MS, () => {
    clock.tick();
    return isNeeded();
  });
  return {
    stop,
    nowMs() {
      if (wake()) clock.resume();
      return clock.nowMs();
    },
  };
}

function startTickers(queues: Queues, handover: Handover): Ticker[] {
  return [
    startTicker(QUEUES_EVERY_MS, () => {
      queues.tick();
    }),
    startTicker(FLOWS_EVERY_MS, () => {
      handover.tick();
    }),
  ];
}

const CLOCKS: Pick<QueueDeps, 'monotonicMs' | 'inNextLoop' | 'wakeAfter'> = {
  monotonicMs: monotonicClockMs,
  inNextLoop: (act) => void setImmediate(act),
  wakeAfter(ms, wake) {
    const timer = setTimeout(wake, Math.ceil(ms));
    return () => {
      clearTimeout(timer);
    };
  },
};

function createCircuits({ config, logger, report, redis, kafka, time }: IsolationBase): Circuits {
  const circuitBytes = memoryShare('dispatcher', 'circuits', config.MEMORY_MIB);
  return new Circuits({
    shared: createOpenCircuits(redis, config.REDIS_PREFIX, time.nowMs),
    partitionOf: (webhookId) => kafka.partitionOf(kafka.topics.messageCreated, webhookId),
    logger,
    report,
    resetMs: config.CIRCUIT_RESET_MS,
    maxCircuits: Math.floor(circuitBytes / CIRCUIT_BYTES),
    nowMs: time.nowMs,
  });
}

function createHandover(
  { config, redis, kafka, time }: IsolationBase,
  known: () => Queues,
): Handover {
  return new Handover({
    known,
    flows: createEndpointFlows(redis, config.REDIS_PREFIX, time.nowMs),
    partitionOf: (webhookId) => kafka.partitionOf(kafka.topics.messageCreated, webhookId),
    startConcurrency: config.ENDPOINT_CONCURRENCY,
    ceiling: queueLimitsOf(config).perEndpoint.ceiling,
    nowMs: time.nowMs,
    ...CLOCKS,
  });
}

function budgetIsolation(
  { config, budgets }: IsolationBase,
  {
    memory,
    circuits,
    queues,
    handover,
  }: { memory: RecordMemory; circuits: Circuits; queues: Queues; handover: Handover },
): void {
  budgets.add('records', memoryShare('dispatcher', 'records', config.MEMORY_MIB), memory.usedBytes);
  budgets.add('circuits', memoryShare('dispatcher', 'circuits', config.MEMORY_MIB), () => {
    const { closed, open, half_open: halfOpen } = circuits.count();
    return (closed + open + halfOpen) * CIRCUIT_BYTES;
  });
  const endpointBytes = MAX_IDLE_ENDPOINTS * ENDPOINT_BYTES;
  budgets.add('endpoints', endpointBytes, () => queues.endpoints().size * ENDPOINT_BYTES);
  const inherited = (): number => (handover.inherited() + circuits.inherited()) * INHERITED_BYTES;
  budgets.add('inherited', 2 * MAX_INHERITED * INHERITED_BYTES, inherited);
  budgets.add('flows', MAX_REPORTED_BYTES, () => handover.reportedBytes());
}

function openPayloads({
  config,
  db,
  budgets,
  keepTrying,
}: IsolationBase): { memory: PayloadMemory } & Pick<PayloadLoader, 'forget'> {
  const cacheBytes = memoryShare('dispatcher', 'payload_cache', config.MEMORY_MIB);
  const heldBytes = memoryShare('dispatcher', 'payloads', config.MEMORY_MIB);
  const loader = createPayloadLoader(createMessageStore(db), cacheBytes, keepTrying);
  const memory = createPayloadMemory(loader.load, heldBytes);
  budgets.add('payload_cache', cacheBytes, loader.usedBytes);
  budgets.add('payloads', heldBytes, memory.usedBytes);
  return { memory, forget: loader.forget };
}
