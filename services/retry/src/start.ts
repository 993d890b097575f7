import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { DelayTopic } from '@posthorn/domain/records/topics.ts';
import { required } from '@posthorn/domain/required.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { type OpenRecordLog, openRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { ConsumeOptions, Consumption } from '@posthorn/platform/kafka/record-log.ts';
import {
  createMemoryBudgets,
  createRecordMemory,
  type RecordMemory,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createRequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createSequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import { createWaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createCountJournal } from '@posthorn/platform/mongo/messages/count-journal.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { createCancellationStore } from '@posthorn/platform/mongo/webhooks/cancellations.ts';
import { openDisableWebhook } from './disable-webhook.ts';
import { createFailingWebhooks } from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import { createHoldNotes, createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { openProvenRecords } from '@posthorn/platform/records/proven-records.ts';
import { eventRecord } from '@posthorn/platform/records/operator-incidents.ts';
import { monotonicClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { openRedis } from '@posthorn/platform/redis/open-redis.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { randomUUID } from 'node:crypto';
import { startCanary } from './canary.ts';
import type { RetryConfig } from './config.ts';
import { createAddUpCounts } from './add-up-counts.ts';
import { createDayMetrics, createKeepDays } from './keep-days.ts';
import { createRetryMetrics, showParked, showUnpublished } from './metrics.ts';
import { createLookAtSequences, createSequenceLookMetrics } from './look-at-sequences.ts';
import { createOperatorRequest, createSendOperatorEvent } from './operator-events.ts';
import { createParkFailure } from './park-failure.ts';
import { createReleaseParked, readyAtMs } from './release-parked.ts';
import { createReleaseTimed, createTimedMetrics } from './release-timed.ts';
import { createEndExpired } from './sweep/end-expired.ts';
import { createEraseNoted, createEraseRequested } from './sweep/erase-noted.ts';
import { createSettleCancellations } from './sweep/settle-cancellations.ts';
import { createStuckSweep } from './sweep/sweep-stuck.ts';
import { createWaitingMetrics, createWaitingSweep } from './sweep/sweep-waiting.ts';
import { UnpublishedSweep } from './sweep/sweep-unpublished.ts';
import { MAX_READ } from './sweep/when-taken-over.ts';
import { openWork } from './work/open-work.ts';
import { createFailingWatch } from './watch-failing-endpoints.ts';

/**
 * A partition that was paused is read again after the poll that runs, so these must be less than HORIZON_MS. Polling ten
 * times a second cost 5 % of a core. Short delays are polled more often, so that their consumer notices a rebalance
 * sooner.
 */
const IDLE_WAIT_MS = 1_000;
const SHORT_WAIT_MS = 500;

const TIME = { monotonicMs: monotonicClockMs, pause };
type Time = typeof TIME;

/** The parts that the steps of the retry service share. */
interface Retry
  extends
    ReturnType<typeof openParts>,
    Pick<OpenRecordLog, 'topics' | 'groups' | 'delayTopics' | 'countPartitions'>,
    ReturnType<typeof openProvenRecords>,
    Time {
  /** Reads records until the service stops. */
  consume: (options: ConsumeOptions) => Promise<void>;
  /** The same while MongoDB can be reached, with the records in the budget of the memory. */
  consumeWithStores: (options: ConsumeOptions) => Promise<void>;
}

/** Starts the retry service, from the stores to the consumers. What starts last stops first. */
export async function startRetry(context: ServiceContext<RetryConfig>): Promise<void> {
  const { config, lifecycle, registry } = context;
  const mongo = await openMongo('posthorn-retry', context);
  const { isConnected } = mongo;
  const consumptions: Consumption[] = [];
  let areTopicsAlive = (): boolean => true;
  await openOpsServer(
    context,
    () => lifecycle.isReady() && isConnected() && consumptions.every((each) => each.isRunning()),
    () => areTopicsAlive() && consumptions.every((each) => each.isAlive()),
  );
  const kafka = await openRecordLog('posthorn-retry', context, mongo.time.nowMs);
  areTopicsAlive = kafka.isAlive;
  const proven = openProvenRecords(context, kafka);

  // Together: each may need the whole time of the drain when a store does not respond.
  lifecycle.onStop('consumers', async () => {
    await Promise.all(consumptions.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
  const consume = async (options: ConsumeOptions): Promise<void> => {
    consumptions.push(await proven.records.consume(options));
  };

  const parts = openParts(context, mongo);
  const consumeWithStores = consumingInMemory(consume, openMemory(parts), isConnected);
  const retry: Retry = { ...kafka, ...proven, ...TIME, ...parts, consume, consumeWithStores };
  await consumeFailures(retry);
  await consumeParked(retry);
  await consumeOperatorEvents(retry);
  await startCanary(context);
  startLoops(retry);
  openWork(retry);
  watchDependencies(registry, {
    mongodb: isConnected,
    kafka: proven.records.isConnected,
    redis: retry.redis.isConnected,
  });
}

/** Opens what the steps of the service share, on the stores. */
function openParts(
  context: ServiceContext<RetryConfig>,
  { db, time }: Awaited<ReturnType<typeof openMongo>>,
) {
  const { config, registry } = context;
  return {
    ...context,
    db,
    databaseTime: time,
    nowMs: time.nowMs,
    metrics: createRetryMetrics(registry, config.RETRY_DELAYS, time.nowMs),
    deliveries: createDeliveryStore(db),
    waiting: createWaitingDeliveries(db),
    sequences: createSequenceStore(db),
    disableWebhook: openDisableWebhook(context, db, time.nowMs),
    webhooks: createWebhookStates(db),
    redis: openRedis(context),
    holder: randomUUID(),
    leases: createLeaseStore(db),
    budgets: createMemoryBudgets(registry),
  };
}

function openMemory({ config, budgets }: ReturnType<typeof openParts>): RecordMemory {
  const budgetBytes = memoryShare('retry', 'records', config.MEMORY_MIB);
  const memory = createRecordMemory(budgetBytes);
  budgets.add('records', budgetBytes, memory.usedBytes);
  return memory;
}

function consumingInMemory(
  consume: Retry['consume'],
  memory: RecordMemory,
  areStoresUp: () => boolean,
): Retry['consumeWithStores'] {
  return ({ handle, ...options }) =>
    consume({
      ...options,
      async handle(record, isOurs) {
        const { release } = memory.hold(record.value.length);
        await handle(record, isOurs).finally(release);
      },
      areStoresUp,
      mayRead: memory.hasRoom,
    });
}

async function consumeFailures(retry: Retry): Promise<void> {
  const { topics, groups, config } = retry;
  await retry.consumeWithStores({
    ...groups.park,
    sharing: { kind: 'evenly', after: 0 },
    handle: createParkFailure({
      ...retry,
      schedule: config.RETRY_DELAYS,
      parkedByDelayMs: topics.parkedByDelayMs,
    }),
    inFlightLimits: { pauseAt: 5_000, resumeAt: 2_500 },
    maxWaitMs: IDLE_WAIT_MS,
  });
}

/** Also reads the delay topics of earlier settings, where records may still wait. */
async function consumeParked(retry: Retry): Promise<void> {
  const { config, topics, groups, delayTopics, countPartitions, registry } = retry;
  const { handle, pauseMs, overdueMs } = createReleaseParked({
    ...retry,
    earlierMs: retry.databaseTime.earlierMs,
    retryDueTopic: topics.retryDue,
    reconcileAfterMs: config.RECONCILE_AFTER,
  });
  showParked(registry, delayTopics, overdueMs);
  let after = countPartitions([topics.deliveryFailed]);
  for (const group of [groups.releaseShort, groups.releaseLong]) {
    if (group.topics.length === 0) continue;
    await retry.consumeWithStores({
      ...group,
      // Each group shares out its partitions from where the one before has ended, so that no process gets every remainder.
      sharing: { kind: 'evenly', after },
      handle,
      delayMs: pauseMs,
      readiness: { sinceMs: readyAtMs, afterMs: (topic) => delayOf(delayTopics, topic) },
      inFlightLimits: { pauseAt: 10_000, resumeAt: 5_000 },
      maxWaitMs: group === groups.releaseLong ? IDLE_WAIT_MS : SHORT_WAIT_MS,
    });
    after += countPartitions(group.topics);
  }
}

function delayOf(delayTopics: ReadonlyMap<string, DelayTopic>, topic: string): number {
  return required(delayTopics, topic, 'delay topic').delayMs;
}

/** Sends operator events to the URL of the operator, if there is one. */
async function consumeOperatorEvents(retry: Retry): Promise<void> {
  const { config, lifecycle, topics, delayTopics, countPartitions, metrics } = retry;
  const { OPERATOR_WEBHOOK_URL: url } = config;
  if (url === undefined) return;
  await retry.consume({
    groupId: `${config.TOPIC_PREFIX}retry-operator-events`,
    topics: [topics.operatorEvents],
    // From where the groups that park and release have ended.
    sharing: {
      kind: 'evenly',
      after: countPartitions([topics.deliveryFailed, ...delayTopics.keys()]),
    },
    handle: createSendOperatorEvent({
      ...retry,
      url,
      makeRequest: createOperatorRequest(config),
      stopping: lifecycle.stopping,
      onResult(result) {
        metrics.operatorEvents.inc({ result });
      },
    }),
    inFlightLimits: { pauseAt: 100, resumeAt: 50 },
    maxWaitMs: 500,
    // An event may be tried for six minutes.
    stallMs: 900_000,
  });
}

/** Starts the work that one process at a time does: sweeps, erasure, the collections of days, the watch. */
function startLoops(retry: Retry): void {
  const { config, registry, lifecycle, db, topics, metrics, databaseTime } = retry;
  const start = (name: string, loop: Loop): void => {
    loop.start();
    lifecycle.onStop(name, () => loop.stop());
  };
  const unpublished = new UnpublishedSweep({
    ...retry,
    createdTopic: topics.messageCreated,
    publishers: createPublisherStore(db),
    messages: createMessageStore(db),
    maxRead: MAX_READ,
  });
  showUnpublished(registry, () => unpublished.oldestAtMs(), databaseTime.nowMs);
  start('sweep of unpublished messages', unpublished);
  const stuck = createStuckSweep({
    ...retry,
    afterMs: config.RECONCILE_AFTER,
    checks: createMessageChecks(db),
    stuck: createStuckDeliveries(db),
    metrics: metrics.stuck,
  });
  start('sweep of stuck deliveries', stuck);
  const cancellations = createCancellationStore(db);
  const settling = { ...retry, cancellations, checks: createMessageChecks(db) };
  start('settlement of cancellations', createSettleCancellations(settling));
  for (const [name, loop] of waitingLoops(retry)) start(name, loop);
  const erasures = { erasure: createPayloadErasure(db), requested: createRequestedErasures(db) };
  start('erasure of payloads', createEraseNoted({ ...retry, ...erasures }));
  start('erasure of what clients have erased', createEraseRequested({ ...retry, ...erasures }));
  const days = createDayCollections(db);
  const dayMetrics = createDayMetrics(registry, databaseTime);
  const keepDays = createKeepDays({ ...retry, ...databaseTime, days, metrics: dayMetrics });
  start('collections of days', keepDays);
  const journal = createCountJournal(db);
  start(
    'adding up of counts',
    createAddUpCounts({ ...retry, journal, monotonicMs: monotonicClockMs }),
  );
  start('watch of failing endpoints', watchFailingEndpoints(retry));
}

/** The loops for deliveries that wait as documents, with their names. */
function waitingLoops(retry: Retry): [string, Loop][] {
  const { registry, db, topics, databaseTime } = retry;
  const holds = createHoldStates(db);
  const sweep = createWaitingSweep({
    ...retry,
    ...databaseTime,
    notes: createHoldNotes(db),
    holds,
    metrics: createWaitingMetrics(registry, databaseTime.nowMs),
  });
  const timed = createReleaseTimed({
    ...retry,
    ...databaseTime,
    retryDueTopic: topics.retryDue,
    metrics: createTimedMetrics(registry),
  });
  const looks = createLookAtSequences({
    ...retry,
    retryDueTopic: topics.retryDue,
    metrics: createSequenceLookMetrics(registry),
  });
  return [
    ['sweep of waiting deliveries', sweep],
    ['release at the time of messages', timed],
    ['looks at ordering keys', looks],
    ['end of expired deliveries on hold', createEndExpired({ ...retry, ...databaseTime, holds })],
  ];
}

function watchFailingEndpoints(retry: Retry): Loop {
  const { config, db, records, topics } = retry;
  return createFailingWatch({
    ...retry,
    autoDisableAfterMs: config.AUTO_DISABLE_AFTER ?? null,
    stats: createStatsQueries(db),
    webhooks: createFailingWebhooks(db),
    async publish(incident) {
      const atMs = retry.nowMs();
      const times = { count: 1, firstAtMs: atMs, lastAtMs: atMs };
      const event = { id: systemIds('oev'), ...incident, ...times };
      await records.publish([eventRecord(topics.operatorEvents, event)]);
    },
  });
}
