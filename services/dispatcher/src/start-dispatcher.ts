import { setTimeout as wait } from 'node:timers/promises';
import { createDeadLetters } from '@posthorn/platform/dead-letters.ts';
import { egressPolicyOf } from '@posthorn/platform/egress-policy.ts';
import type { Consumption, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { VERSION, watchDependencies } from '@posthorn/platform/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import { openOpsServer } from '@posthorn/platform/ops-server.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import { EVERYTHING, listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import { createVault } from '@posthorn/platform/vault.ts';
import type { mongo } from 'mongoose';
import { Agent } from 'undici';
import { createAttemptDelivery } from './attempt-delivery.ts';
import type { DispatcherConfig } from './config.ts';
import { createDeadlineSweep } from './deadline-sweep.ts';
import { createDispatcherMetrics } from './dispatcher-metrics.ts';
import { createGuardedConnect } from './guarded-connect.ts';
import { createLoadPayload } from './load-payload.ts';
import { createWebhookLoader, type WebhookLoader } from './load-webhook.ts';
import { createOriginSlots } from './origin-slots.ts';
import { createPace } from './pace-webhook.ts';
import { createRecordAttempts } from './record-attempts.ts';
import { createSendWebhook, type SendWebhook } from './send-webhook.ts';
import { createSettle } from './settle-delivery.ts';
import { createResends } from './settle-resend.ts';

type Context = ServiceContext<DispatcherConfig>;

/** Wires the dispatcher, from the stores to the consumer; what starts last stops first. */
export async function startDispatcher(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const db = await openMongo('posthorn-dispatcher', context);
  const consumptions: Consumption[] = [];
  await openOpsServer(
    context,
    () => lifecycle.isReady() && db.isConnected() && consumptions.every((each) => each.isRunning()),
  );
  const { log, topics } = await openRecordLog('posthorn-dispatcher', context);
  const webhooks = openWebhookLoader(context, db.db);
  const shared = { metrics: createDispatcherMetrics(registry), logger, nowMs: systemClockMs };
  const resends = createResends({ ...shared, marks: createResendMarks(db.db) });
  const settleDelivery = createSettle({
    ...shared,
    recordAttempts: createRecordAttempts(createDeliveryStore(db.db)),
    log,
    failedTopic: topics.deliveryFailed,
    schedule: config.RETRY_DELAYS,
  });
  const handle = createAttemptDelivery({
    topics,
    loadWebhook: webhooks.load,
    loadPayload: createLoadPayload(createMessageStore(db.db)),
    send: openSender(context),
    slots: createOriginSlots(CONNECTIONS_PER_ORIGIN),
    settle: (settled) =>
      settled.due.trigger === 'resend' ? resends.settle(settled) : settleDelivery(settled),
    pace: createPace({
      ...{ log, nowMs: systemClockMs, wait, deferrals: shared.metrics.deferrals },
      parkedByDelayMs: topics.parkedByDelayMs,
      monotonicMs: () => performance.now(),
    }),
    resendOnce: resends.once,
    nowMs: systemClockMs,
    deadLetters: createDeadLetters(topics.deadLetters, { log, logger, registry }),
  });
  consumptions.push(await consumeDue(context, log, topics, handle));
  watchDependencies(registry, { mongodb: db.isConnected, kafka: log.isConnected });
}

/** One group for fresh messages and retries: partition p of both belongs to one dispatcher. */
async function consumeDue(
  { config, lifecycle }: Context,
  log: RecordLog,
  topics: { messageCreated: string; retryDue: string },
  handle: ReturnType<typeof createAttemptDelivery>,
): Promise<Consumption> {
  const high = config.MAX_IN_FLIGHT;
  const consumption = await log.consume({
    groupId: `${config.TOPIC_PREFIX}dispatcher`,
    topics: [topics.messageCreated, topics.retryDue],
    handle,
    window: { high, low: Math.floor(high * 0.75) },
  });
  lifecycle.onStop('consumer', () => consumption.stop(config.DRAIN_TIMEOUT_MS));
  return consumption;
}

function openWebhookLoader({ config, logger, lifecycle }: Context, db: mongo.Db): WebhookLoader {
  const webhooks = createWebhookStore(db, createVault(config.ENCRYPTION_KEYS));
  const loader = createWebhookLoader(webhooks, logger);
  const subscriber = connectRedis(config.REDIS_URL, logger);
  lifecycle.onStop('redis', () => {
    subscriber.disconnect();
  });
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: ({ id }) => {
      if (id === EVERYTHING) loader.forgetAll();
      else loader.forget(id);
    },
    onMissed: loader.forgetAll,
  });
  return loader;
}

const CONNECTIONS_PER_ORIGIN = 128;
const KEEP_ALIVE_MS = 30_000;
/** undici's own time-outs stand behind the deadline sweep, for sockets that nobody reads any more. */
const BACKSTOP_MS = 5_000;

function openSender({ config, lifecycle }: Context): SendWebhook {
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const agent = new Agent({
    connect: createGuardedConnect({
      policy: egressPolicyOf(config),
      connectTimeoutMs: timeoutMs,
    }),
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: timeoutMs + BACKSTOP_MS,
    bodyTimeout: timeoutMs + BACKSTOP_MS,
  });
  const deadlines = createDeadlineSweep(() => performance.now());
  lifecycle.onStop('sender', async () => {
    deadlines.stop();
    await agent.destroy();
  });
  return createSendWebhook({
    agent,
    deadlines,
    timeoutMs,
    userAgent: `Posthorn/${VERSION}`,
    wallClockMs: systemClockMs,
    monotonicMs: () => performance.now(),
  });
}
