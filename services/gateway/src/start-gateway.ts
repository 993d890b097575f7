import { createServer } from 'node:http';
import { closeServer } from '@posthorn/platform/close-server.ts';
import { egressPolicyOf } from '@posthorn/platform/egress-policy.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { listen } from '@posthorn/platform/listen.ts';
import { watchDependencies } from '@posthorn/platform/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { openOpsServer } from '@posthorn/platform/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/system.ts';
import type { Express } from 'express';
import { createAcceptMessage } from './accept-message.ts';
import { createApp } from './app.ts';
import { createAuthenticate } from './authenticate.ts';
import type { GatewayConfig } from './config.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { openCaches } from './open-caches.ts';
import { openOutbox } from './open-outbox.ts';
import { appRoutes } from './routes/apps.ts';
import { deliveryRoutes } from './routes/deliveries.ts';
import { projectRoutes } from './routes/projects.ts';
import { messageRoutes } from './routes/webhook-messages.ts';
import { webhookRoutes } from './routes/webhooks.ts';

type Context = ServiceContext<GatewayConfig>;

/** Wires the gateway, from the stores to the open port; what starts last stops first. */
export async function startGateway(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const mongo = await openMongo('posthorn-gateway', context);
  await openOpsServer(context, () => lifecycle.isReady() && mongo.isConnected());
  const kafka = await openRecordLog('posthorn-gateway', context);
  const caches = openCaches(context, mongo.db);
  const messages = createMessageStore(mongo.db);
  const topic = kafka.topics.messageCreated;
  const outbox = await openOutbox(context, { db: mongo.db, log: kafka.log, messages, topic });

  const shared = { db: mongo.db, newId: systemIds, nowMs: systemClockMs };
  const stores = { messages, deliveries: createDeliveryStore(mongo.db), ...caches };
  const { accept, idle } = createAcceptMessage({ ...shared, ...outbox, ...stores, logger });
  lifecycle.onStop('accept', idle);
  const app = createApp({
    authenticate: createAuthenticate(mongo.db),
    metrics: createHttpMetrics(registry),
    logger,
    routes: [
      ...projectRoutes(shared),
      ...appRoutes(shared),
      ...webhookRoutes({ ...shared, ...stores, policy: egressPolicyOf(config) }),
      ...messageRoutes({ ...stores, accept, logger }),
      ...deliveryRoutes(stores),
    ],
  });
  watchDependencies(registry, {
    mongodb: mongo.isConnected,
    kafka: kafka.log.isConnected,
    redis: caches.isRedisUp,
  });
  await openPort(context, app);
}

async function openPort({ config, logger, lifecycle }: Context, app: Express): Promise<void> {
  const { HOST: host, PORT: port, DRAIN_TIMEOUT_MS: drainMs } = config;
  const server = createServer({ requestTimeout: 30_000, keepAliveTimeout: 65_000 }, app);
  await listen(server, { host, port, setting: 'PORT' });
  lifecycle.onStop('http', () => closeServer(server, drainMs));
  logger.info({ host, port }, 'listening');
}
