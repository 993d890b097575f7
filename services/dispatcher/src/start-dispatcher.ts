import { createDeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { Consumption, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import { createAttemptDelivery } from './attempt-delivery.ts';
import type { DispatcherConfig } from './config.ts';
import { createDispatcherMetrics, type DispatcherMetrics } from './dispatcher-metrics.ts';
import { createPayloadLoader } from './load/load-payload.ts';
import { createMadeBefore } from './settle/settle-if-recorded.ts';
import { createMakeAttempt, type MakeAttempt } from './make-attempt.ts';
import { openIsolation, type Isolation } from './isolation/open-isolation.ts';
import { openSender } from './sending/open-sender.ts';
import { openSharedState, type SharedState } from './open-shared-state.ts';
import { createPayloadMemory } from './load/payload-memory.ts';
import { createRecordAttempts } from './settle/record-attempts.ts';
import { createSettle, type Settle } from './settle/settle-delivery.ts';
import { createResends } from './settle/settle-resend.ts';

type Context = ServiceContext<DispatcherConfig>;

/** What the steps are made of. */
interface Parts extends Pick<OpenRecordLog, 'log' | 'topics'> {
  db: mongo.Db;
  metrics: DispatcherMetrics;
  shared: SharedState;
  isolation: Isolation;
  budgets: MemoryBudgets;
}

/** Wires the dispatcher, from the stores to the consumers; what starts last stops first. */
export async function startDispatcher(context: Context): Promise<void> {
  const { lifecycle, registry } = context;
  const { db, isConnected } = await openMongo('posthorn-dispatcher', context);
  const consumptions: Consumption[] = [];
  await openOpsServer(
    context,
    () => lifecycle.isReady() && isConnected() && consumptions.every((each) => each.isRunning()),
    () => consumptions.every((each) => each.isAlive()),
  );
  const { log, topics } = await openRecordLog('posthorn-dispatcher', context);
  const metrics = createDispatcherMetrics(registry);
  const budgets = createMemoryBudgets(registry);
  const shared = openSharedState(context, db, budgets);
  const isolation = openIsolation(context, { log, topics, shared, budgets });
  const parts = { db, log, topics, metrics, shared, isolation, budgets };
  const attempt = createSteps(context, parts);
  const isJudgeable = (): boolean => isConnected() && log.isConnected();
  consumptions.push(
    ...(await consumeDue(context, log, topics, { attempt, isolation, isJudgeable })),
  );
  watchDependencies(registry, {
    mongodb: isConnected,
    kafka: log.isConnected,
    redis: shared.isConnected,
  });
}

function createSteps(context: Context, parts: Parts): ReturnType<typeof createAttemptDelivery> {
  const { logger, registry } = context;
  const { db, log, topics, shared, isolation, metrics } = parts;
  const { loadWebhook } = shared;
  const common = { metrics, logger, nowMs: systemClockMs };
  const resends = createResends({ ...common, marks: createResendMarks(db) });
  const settleDelivery = openSettle(context, parts);
  const settle: Settle = (settled) =>
    settled.due.trigger === 'resend' ? resends.settle(settled) : settleDelivery(settled);
  const { queues, memory, leases, defer, moveToSlowLane } = isolation;
  return createAttemptDelivery({
    topics,
    deadLetters: createDeadLetters(topics.deadLetters, { log, logger, registry }),
    memory,
    leases,
    madeBefore: createMadeBefore({ deliveries: createDeliveryStore(db), settle }),
    resendOnce: resends.once,
    loadWebhook,
    queues,
    makeAttempt: openMakeAttempt(context, parts),
    moveToSlowLane,
    defer,
    settle,
    nowMs: systemClockMs,
  });
}

const MIB = 1_048_576;

function openMakeAttempt(context: Context, { db, shared, budgets }: Parts): MakeAttempt {
  const { PAYLOAD_CACHE_MIB, PAYLOAD_MEMORY_MIB } = context.config;
  const loader = createPayloadLoader(createMessageStore(db), PAYLOAD_CACHE_MIB * MIB);
  const payloads = createPayloadMemory(loader.load, PAYLOAD_MEMORY_MIB * MIB);
  budgets.add('payload_cache', PAYLOAD_CACHE_MIB * MIB, loader.usedBytes);
  budgets.add('payloads', PAYLOAD_MEMORY_MIB * MIB, payloads.usedBytes);
  return createMakeAttempt({
    payloads,
    loadWebhook: shared.loadWebhook,
    send: openSender(context),
    nowMs: systemClockMs,
  });
}

function openSettle({ config, logger }: Context, { db, log, topics, metrics }: Parts): Settle {
  return createSettle({
    log,
    metrics,
    logger,
    nowMs: systemClockMs,
    recordAttempts: createRecordAttempts(createDeliveryStore(db)),
    failedTopic: topics.deliveryFailed,
    schedule: config.RETRY_DELAYS,
  });
}

interface Work {
  attempt: ReturnType<typeof createAttemptDelivery>;
  isolation: Isolation;
  isJudgeable: () => boolean;
}

/** Beside the time of the attempt itself: a record waits for its endpoint for 30 s at most. */
const STALLED_AFTER_MS = 105_000;

/** Memory bounds what is under work; these stand behind it. */
const WINDOW = { high: 50_000, low: 45_000 };

/**
 * One group for fresh messages and retries, partition p of both with one dispatcher; and one for the
 * slow lane, so that its backlog holds nothing else up.
 */
async function consumeDue(
  { config, lifecycle }: Context,
  log: RecordLog,
  topics: OpenRecordLog['topics'],
  { attempt, isolation, isJudgeable }: Work,
): Promise<Consumption[]> {
  let tookOver = Promise.resolve();
  const common = {
    isJudgeable,
    window: WINDOW,
    mayRead: isolation.mayRead,
    stallMs: STALLED_AFTER_MS + config.DELIVERY_TIMEOUT_MS,
    onAssigned: () => {
      tookOver = isolation.takeOver();
    },
    handle: async (...[record]: Parameters<typeof attempt>) => {
      await tookOver;
      await attempt(record);
    },
  };
  const group = `${config.TOPIC_PREFIX}dispatcher`;
  const consumptions = [
    await log.consume({
      ...common,
      groupId: group,
      topics: [topics.messageCreated, topics.retryDue],
    }),
    await log.consume({
      ...common,
      groupId: `${group}-slow`,
      topics: [topics.slowLane],
      mayRead: isolation.mayReadSlowLane,
      // Mostly idle, and in no hurry once it was full.
      maxWaitMs: 500,
    }),
  ];
  lifecycle.onStop('consumers', async () => {
    isolation.queues.close();
    await Promise.all(consumptions.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
  return consumptions;
}
