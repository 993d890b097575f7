import type { ConsumerGroups } from '@posthorn/domain/records/consumer-groups.ts';
import type { DelayTopic, TopicNames } from '@posthorn/domain/records/topics.ts';
import { required } from '@posthorn/domain/required.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import { openProvenRecords } from '@posthorn/platform/proof/open-proven-records.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { Consumption, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import {
  createWebhookStates,
  type WebhookStates,
} from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import { createRecordMemory, type RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { startCanary } from './canary/start-canary.ts';
import type { RetryConfig } from './config.ts';
import { countingMemory } from './counting-memory.ts';
import { HORIZON_MS, pauseMsFor, readyAtMs } from './release/wait-until-due.ts';
import { createMarkBacklogs } from './release/mark-backlogs.ts';
import { createLatestRelease, type LatestRelease } from './release/latest-release.ts';
import { createParkFailure } from './park-failure.ts';
import { openOperatorEvents } from './operator-events/open-operator-events.ts';
import { createReleaseParked } from './release/release-parked.ts';
import { createRetryMetrics, showParked, type RetryMetrics } from './retry-metrics.ts';
import { startSweeps } from './start-sweeps.ts';
import { createOverdueWatch } from './release/watch-overdue.ts';

type Context = ServiceContext<RetryConfig>;

/** What the consumers are made from. */
interface Wires {
  records: RecordLog;
  topics: TopicNames;
  groups: ConsumerGroups;
  delayTopics: ReadonlyMap<string, DelayTopic>;
  countPartitions: (topics: readonly string[]) => number;
  deliveries: DeliveryStore;
  webhooks: WebhookStates;
  deadLetters: DeadLetters;
  metrics: RetryMetrics;
  latestRelease: LatestRelease;
  /** False while MongoDB is away: nothing can be recorded or released then. */
  areStoresUp: () => boolean;
  memory: RecordMemory;
}

/** Starts the retry service, from the stores to the consumers. What starts last stops first. */
export async function startRetry(context: Context): Promise<void> {
  const { config, lifecycle, registry } = context;
  const store = await openMongo('posthorn-retry', context);
  const consumptions: Consumption[] = [];
  let areTopicsAlive = (): boolean => true;
  await openOpsServer(
    context,
    () =>
      lifecycle.isReady() && store.isConnected() && consumptions.every((each) => each.isRunning()),
    () => areTopicsAlive() && consumptions.every((each) => each.isAlive()),
  );
  const kafka = await openRecordLog('posthorn-retry', context);
  const { topics, groups, delayTopics, countPartitions } = kafka;
  const { records, deadLetters } = openProvenRecords(context, kafka);
  areTopicsAlive = kafka.isAlive;
  const deliveries = createDeliveryStore(store.db);
  const metrics = createRetryMetrics(registry, config.RETRY_DELAYS);
  const latestRelease = createLatestRelease({
    delayMsOf: (topic) => required(delayTopics, topic, 'delay topic').delayMs,
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  const wires: Wires = {
    records,
    topics,
    groups,
    delayTopics,
    countPartitions,
    deliveries,
    webhooks: createWebhookStates(store.db),
    deadLetters,
    metrics,
    latestRelease,
    areStoresUp: store.isConnected,
    memory: openMemory(context),
  };
  // Together: each may need the whole time of the drain when a store does not answer.
  lifecycle.onStop('consumers', async () => {
    await Promise.all(consumptions.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
  consumptions.push(await consumeFailures(context, wires));
  await consumeParked(context, wires, consumptions);
  const sending = await openOperatorEvents(context, { ...wires, db: store.db });
  if (sending) consumptions.push(sending);
  await startCanary(context);
  startSweeps(context, { db: store.db, records, topics, deliveries, metrics });
  watchDependencies(registry, { mongodb: store.isConnected, kafka: records.isConnected });
}

function openMemory({ config, registry }: Context): RecordMemory {
  const budgetBytes = memoryShare('retry', 'records', config.MEMORY_MIB);
  const memory = createRecordMemory(budgetBytes);
  createMemoryBudgets(registry).add('records', budgetBytes, memory.usedBytes);
  return memory;
}

function openRelease(
  { config, registry, logger, keepTrying }: Context,
  {
    records,
    topics,
    delayTopics,
    deliveries,
    webhooks,
    deadLetters,
    metrics,
    latestRelease,
  }: Wires,
): ReturnType<typeof createReleaseParked> {
  const overdue = createOverdueWatch();
  showParked(registry, delayTopics, (topic) => overdue.overdueMs(topic, systemClockMs()));
  return createReleaseParked({
    retryDueTopic: topics.retryDue,
    delayTopics,
    records,
    deliveries,
    webhooks,
    markBacklogs: createMarkBacklogs({
      webhooks,
      logger,
      reconcileAfterMs: config.RECONCILE_AFTER,
      nowMs: systemClockMs,
    }),
    deadLetters,
    keepTrying,
    overdue,
    metrics,
    logger,
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
    latestRelease,
  });
}

/**
 * A partition that was paused is read again after the poll that runs, so these must be less than HORIZON_MS.
 * Polling ten times a second cost 5 % of a core. Short delays are asked for more often, so that their consumer
 * notices a rebalance sooner.
 */
const IDLE_WAIT_MS = 1_000;
const SHORT_WAIT_MS = 500;

async function consumeFailures(
  { config, logger, keepTrying }: Context,
  { records, topics, groups, deliveries, deadLetters, metrics, areStoresUp, memory }: Wires,
): Promise<Consumption> {
  const handle = createParkFailure({
    schedule: config.RETRY_DELAYS,
    parkedByDelayMs: topics.parkedByDelayMs,
    records,
    deliveries,
    deadLetters,
    keepTrying,
    metrics,
    logger,
    nowMs: systemClockMs,
  });
  return records.consume({
    ...groups.park,
    sharing: { kind: 'evenly', after: 0 },
    handle: countingMemory(memory, handle),
    areStoresUp,
    mayRead: memory.hasRoom,
    inFlightLimits: { pauseAt: 5_000, resumeAt: 2_500 },
    maxWaitMs: IDLE_WAIT_MS,
  });
}

/** Also reads the delay topics of earlier settings, where records may still wait. */
async function consumeParked(
  context: Context,
  wires: Wires,
  consumptions: Consumption[],
): Promise<void> {
  const { records, topics, groups, delayTopics, areStoresUp, memory, latestRelease } = wires;
  const handle = openRelease(context, wires);
  let after = wires.countPartitions([topics.deliveryFailed]);
  for (const group of [groups.releaseShort, groups.releaseLong]) {
    if (group.topics.length === 0) continue;
    const consumption = await records.consume({
      ...group,
      // Each group deals out its partitions from where the one before has ended, so that no process gets every remainder.
      sharing: { kind: 'evenly', after },
      handle: countingMemory(memory, handle),
      areStoresUp,
      mayRead: memory.hasRoom,
      delayMs: (record, endOffset) =>
        Math.min(
          pauseMsFor(record, systemClockMs()),
          latestRelease(record, endOffset) - HORIZON_MS - monotonicClockMs(),
        ),
      readiness: {
        sinceMs: readyAtMs,
        afterMs: (topic) => required(delayTopics, topic, 'delay topic').delayMs,
      },
      inFlightLimits: { pauseAt: 10_000, resumeAt: 5_000 },
      maxWaitMs: group === groups.releaseLong ? IDLE_WAIT_MS : SHORT_WAIT_MS,
    });
    consumptions.push(consumption);
    after += wires.countPartitions(group.topics);
  }
}
