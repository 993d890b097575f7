import { createDeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { Consumption, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { watchDependencies } from '@posthorn/platform/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import { openOpsServer } from '@posthorn/platform/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { mongo } from 'mongoose';
import { createAttemptDelivery, type AttemptDeps } from './attempt-delivery.ts';
import type { DispatcherConfig } from './config.ts';
import { createDispatcherMetrics, type DispatcherMetrics } from './dispatcher-metrics.ts';
import { createFindTarget } from './find-target.ts';
import { createLoadPayload } from './load-payload.ts';
import { createMadeBefore } from './made-before.ts';
import { createMakeAttempt } from './make-attempt.ts';
import { openIsolation, type Isolation } from './open-isolation.ts';
import { openSender } from './open-sender.ts';
import { openSharedState, type SharedState } from './open-shared-state.ts';
import { createRecordAttempts } from './record-attempts.ts';
import { createSettle, type Settle } from './settle-delivery.ts';
import { createResends } from './settle-resend.ts';

type Context = ServiceContext<DispatcherConfig>;

/** What the steps are made of. */
interface Parts extends Pick<OpenRecordLog, 'log' | 'topics'> {
  db: mongo.Db;
  metrics: DispatcherMetrics;
  shared: SharedState;
  isolation: Isolation;
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
  const shared = openSharedState(context, db);
  const isolation = openIsolation(context, { log, topics, metrics, shared });
  const attempt = createSteps(context, { db, log, topics, metrics, shared, isolation });
  const isJudgeable = (): boolean => isConnected() && log.isConnected();
  consumptions.push(
    ...(await consumeDue(context, log, topics, { attempt, isolation, isJudgeable })),
  );
  watchDependencies(registry, {
    ...{ mongodb: isConnected, kafka: log.isConnected, redis: shared.isConnected },
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
  const deadLetters = createDeadLetters(topics.deadLetters, { log, logger, registry });
  const findTarget = createFindTarget({ loadWebhook, settle, nowMs: systemClockMs });
  const steps: AttemptDeps = {
    ...{ ...isolation, topics, deadLetters, settle, findTarget, nowMs: systemClockMs },
    resendOnce: resends.once,
    madeBefore: createMadeBefore({ deliveries: createDeliveryStore(db), settle }),
    makeAttempt: createMakeAttempt({
      ...{ ...isolation, findTarget, loadWebhook, deadLetters, settle },
      loadPayload: createLoadPayload(createMessageStore(db)),
      send: openSender(context),
    }),
  };
  return createAttemptDelivery(steps);
}

function openSettle({ config, logger }: Context, { db, log, topics, metrics }: Parts): Settle {
  return createSettle({
    ...{ log, metrics, logger, nowMs: systemClockMs },
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

/** Beside the time of the attempt itself: a record waits at most 30 s in its line, and 5 s for its rate. */
const STALLED_AFTER_MS = 105_000;

/** Of ids, without payloads: about 15 MB. */
const SLOW_WINDOW = { high: 10_000, low: 7_500 };

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
  const high = config.MAX_IN_FLIGHT;
  let tookOver = Promise.resolve();
  const common = {
    ...{ isJudgeable, window: { high, low: Math.floor(high * 0.75) } },
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
      ...{ ...common, groupId: group, topics: [topics.messageCreated, topics.retryDue] },
    }),
    await log.consume({
      ...{ ...common, groupId: `${group}-slow`, topics: [topics.slowLane], window: SLOW_WINDOW },
      // Mostly idle, and in no hurry once it was full.
      maxWaitMs: 500,
    }),
  ];
  lifecycle.onStop('consumers', async () => {
    isolation.lanes.close();
    await Promise.all(consumptions.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
  return consumptions;
}
