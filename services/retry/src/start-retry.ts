import type { DelayTopic, TopicNames } from '@posthorn/domain/records/topics.ts';
import { createDeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { Consumption, LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import { createRecordMemory, type RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { RetryConfig } from './config.ts';
import { delayTiersOf } from './release/delay-tiers.ts';
import { HORIZON_MS, postponementMs } from './release/hold-until-due.ts';
import { createLatestRelease, type LatestRelease } from './release/latest-release.ts';
import { createParkFailure } from './park-failure.ts';
import { createReleaseParked } from './release/release-parked.ts';
import { createRetryMetrics, showParked } from './retry-metrics.ts';
import { startBackground } from './start-background.ts';
import { createOverdueWatch } from './release/watch-overdue.ts';

type Context = ServiceContext<RetryConfig>;

interface Wires {
  log: RecordLog;
  topics: TopicNames;
  delayTopics: ReadonlyMap<string, DelayTopic>;
  nowMs: () => number;
  /** Nothing is recorded or released while the store is away. */
  isJudgeable: () => boolean;
  memory: RecordMemory;
}

/** Wires the retry service, from the stores to the consumers; what starts last stops first. */
export async function startRetry(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const store = await openMongo('posthorn-retry', context);
  const consumptions: Consumption[] = [];
  await openOpsServer(
    context,
    () =>
      lifecycle.isReady() && store.isConnected() && consumptions.every((each) => each.isRunning()),
    () => consumptions.every((each) => each.isAlive()),
  );
  const { log, topics, delayTopics } = await openRecordLog('posthorn-retry', context);
  const deliveries = createDeliveryStore(store.db);
  const metrics = createRetryMetrics(registry);
  const deadLetters = createDeadLetters(topics.deadLetters, { log, logger, registry });
  const wires = {
    log,
    topics,
    delayTopics,
    deliveries,
    metrics,
    deadLetters,
    logger,
    nowMs: systemClockMs,
    isJudgeable: store.isConnected,
    memory: openMemory(context),
  };

  const { parkedByDelayMs, retryDue: retryDueTopic } = topics;
  const park = createParkFailure({ ...wires, parkedByDelayMs, schedule: config.RETRY_DELAYS });
  const webhooks = createWebhookStates(store.db);
  const watched = watchParked(context, delayTopics);
  const release = createReleaseParked({ ...wires, ...watched, retryDueTopic, webhooks });
  consumptions.push(
    await consumeFailures(context, wires, park),
    ...(await consumeParked(context, { ...wires, ...watched }, release)),
  );
  startBackground(context, { ...wires, db: store.db });
  watchDependencies(registry, { mongodb: store.isConnected, kafka: log.isConnected });
}

const MIB = 1_048_576;

function openMemory({ config, registry }: Context): RecordMemory {
  const budgetBytes = config.RECORD_MEMORY_MIB * MIB;
  const memory = createRecordMemory(budgetBytes);
  createMemoryBudgets(registry).add('records', budgetBytes, memory.usedBytes);
  return memory;
}

/** Weighs each record until the work on it is over. */
function weighed(
  memory: RecordMemory,
  handle: (record: LogRecord) => Promise<void>,
): (record: LogRecord) => Promise<void> {
  return async (record) => {
    const { release } = memory.hold(record.value.length);
    try {
      await handle(record);
    } finally {
      release();
    }
  };
}

function watchParked({ registry }: Context, delayTopics: Wires['delayTopics']) {
  const overdue = createOverdueWatch();
  showParked(registry, delayTopics, (topic) => overdue.overdueMs(topic, systemClockMs()));
  const monotonicMs = (): number => performance.now();
  const latestRelease = createLatestRelease({
    delayMsOf: (topic) => delayTopics.get(topic)?.delayMs ?? Infinity,
    nowMs: systemClockMs,
    monotonicMs,
  });
  return { overdue, latestRelease, monotonicMs };
}

/** Less than the horizon within which due records are held; asking ten times a second cost 5 % of a core. */
const IDLE_WAIT_MS = 1_000;

async function consumeFailures(
  { config, lifecycle }: Context,
  { log, topics, isJudgeable, memory }: Wires,
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption> {
  const consumption = await log.consume({
    groupId: `${config.TOPIC_PREFIX}retry-park`,
    topics: [topics.deliveryFailed],
    handle: weighed(memory, handle),
    isJudgeable,
    mayRead: memory.hasRoom,
    window: { high: 5_000, low: 2_500 },
    maxWaitMs: IDLE_WAIT_MS,
  });
  lifecycle.onStop('park', () => consumption.stop(config.DRAIN_TIMEOUT_MS));
  return consumption;
}

/** Reads the topics of earlier settings too, so that changed delays strand nothing. */
async function consumeParked(
  { config, lifecycle }: Context,
  {
    log,
    delayTopics,
    nowMs,
    isJudgeable,
    memory,
    latestRelease,
  }: Wires & { latestRelease: LatestRelease },
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption[]> {
  const consumptions: Consumption[] = [];
  for (const [tier, names] of Object.entries(delayTiersOf(delayTopics))) {
    if (names.length === 0) continue;
    const consumption = await log.consume({
      groupId: `${config.TOPIC_PREFIX}retry-release-${tier}`,
      topics: names,
      handle: weighed(memory, handle),
      isJudgeable,
      mayRead: memory.hasRoom,
      postponeMs: (record, endOffset) =>
        Math.min(
          postponementMs(record, nowMs()),
          latestRelease(record, endOffset) - HORIZON_MS - performance.now(),
        ),
      window: { high: 10_000, low: 5_000 },
      ...(tier === 'long' && { maxWaitMs: IDLE_WAIT_MS }),
    });
    lifecycle.onStop(`release-${tier}`, () => consumption.stop(config.DRAIN_TIMEOUT_MS));
    consumptions.push(consumption);
  }
  return consumptions;
}
