import type { ConsumerGroups, DelayTopic, TopicNames } from '@posthorn/domain/records/topics.ts';
import { required } from '@posthorn/domain/required.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type {
  ConsumeOptions,
  Consumption,
  RecordLog,
} from '@posthorn/platform/kafka/record-log.ts';
import {
  createMemoryBudgets,
  createRecordMemory,
  type RecordMemory,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { createLeaseStore, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import {
  createWebhookStates,
  type WebhookStates,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { openProvenRecords } from '@posthorn/platform/records/open-proven-records.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { randomUUID } from 'node:crypto';
import { startCanary } from './canary.ts';
import type { RetryConfig } from './config.ts';
import { createDayMetrics, createKeepDays } from './keep-days.ts';
import { openOperatorEvents } from './operator-events.ts';
import { createParkFailure } from './park-failure.ts';
import {
  createLatestRelease,
  createMarkBacklogs,
  createOverdueWatch,
  createReleaseParked,
  HORIZON_MS,
  type LatestRelease,
  pauseMsFor,
  readyAtMs,
} from './release-parked.ts';
import { createRetryMetrics, type RetryMetrics, showParked } from './retry-metrics.ts';
import { createEraseNoted } from './sweep/erase-noted.ts';
import { createStuckMetrics, showUnpublished } from './sweep/sweep-metrics.ts';
import { createStuckSweep } from './sweep/sweep-stuck.ts';
import { createUnpublishedSweep } from './sweep/sweep-unpublished.ts';
import { MAX_READ } from './sweep/when-taken-over.ts';

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

interface SweepWires {
  db: Database;
  records: RecordLog;
  topics: TopicNames;
  deliveries: DeliveryStore;
  metrics: RetryMetrics;
}

/** Starts the sweeps, the erasure of payloads, and what keeps the collections of days. One process at a time does each. */
export function startSweeps(context: ServiceContext<RetryConfig>, wires: SweepWires): void {
  const { lifecycle, logger, registry, config } = context;
  const { db, topics, records, deliveries, metrics } = wires;
  const holder = randomUUID();
  const leases = createLeaseStore(db);
  const shared = { holder, leases, deliveries, records, rest: pause, logger };
  const unpublished = createUnpublishedSweep({
    ...shared,
    createdTopic: topics.messageCreated,
    publishers: createPublisherStore(db),
    messages: createMessageStore(db),
    maxRead: MAX_READ,
    metrics,
    monotonicMs: monotonicClockMs,
  });
  unpublished.start();
  lifecycle.onStop('sweep of unpublished messages', unpublished.stop);
  showUnpublished(registry, unpublished.oldestAtMs, systemClockMs);

  const stuck = createStuckSweep({
    ...shared,
    topics,
    afterMs: config.RECONCILE_AFTER,
    monotonicMs: monotonicClockMs,
    checks: createMessageChecks(db),
    stuck: createStuckDeliveries(db),
    webhooks: createWebhookStates(db),
    companies: createCompanyLife(db),
    metrics: createStuckMetrics(registry, systemClockMs),
  });
  stuck.start();
  lifecycle.onStop('sweep of stuck deliveries', stuck.stop);

  startErasing(context, db, { holder, leases });
  startKeepingDays(context, db, { holder, leases });
}

interface Holding {
  holder: string;
  leases: LeaseStore;
}

function startErasing({ lifecycle, logger }: Context, db: Database, holding: Holding): void {
  const erasing = createEraseNoted({
    ...holding,
    erasure: createPayloadErasure(db),
    monotonicMs: monotonicClockMs,
    rest: pause,
    logger,
  });
  erasing.start();
  lifecycle.onStop('erasure of payloads', erasing.stop);
}

function startKeepingDays(
  { lifecycle, logger, registry }: Context,
  db: Database,
  holding: Holding,
): void {
  const keepDays = createKeepDays({
    ...holding,
    days: createDayCollections(db),
    metrics: createDayMetrics(registry, systemClockMs),
    nowMs: systemClockMs,
    logger,
  });
  keepDays.start();
  lifecycle.onStop('collections of days', keepDays.stop);
}

/** Counts the memory of each record until it is handled. */
export function countingMemory(
  memory: RecordMemory,
  handle: ConsumeOptions['handle'],
): ConsumeOptions['handle'] {
  return async (record, isOurs) => {
    const { release } = memory.hold(record.value.length);
    try {
      await handle(record, isOurs);
    } finally {
      release();
    }
  };
}
