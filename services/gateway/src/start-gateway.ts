import { closeServer } from '@posthorn/platform/service/close-server.ts';
import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { listen } from '@posthorn/platform/service/listen.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Express } from 'express';
import type { mongo } from 'mongoose';
import { createAcceptOnce } from './accept/idempotent-accept.ts';
import { createApp } from './app.ts';
import { createChangeWebhook } from './webhooks/change-webhook.ts';
import { bytesOfMib, type GatewayConfig } from './config.ts';
import { createHardenedServer } from './http/harden-server.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { createRequestMemory } from './http/request-memory.ts';
import type { Route } from './http/route.ts';
import { openAccept } from './accept/open-accept.ts';
import { openAuthentication } from './api-keys/open-authentication.ts';
import { openBackground } from './open-background.ts';
import { openCaches, type Caches } from './open-caches.ts';
import { openOutbox } from './outbox/open-outbox.ts';
import { openRateLimits } from './limits/open-rate-limits.ts';
import { concurrencyBoundsOf, createReadHealth } from './history/read-health.ts';
import { apiRoutes } from './api/routes/api-routes.ts';
import { createStartResend } from './resend/start-resend.ts';

type Context = ServiceContext<GatewayConfig>;
type Kafka = Awaited<ReturnType<typeof openRecordLog>>;

/** Wires the gateway, from the stores to the open port; what starts last stops first. */
export async function startGateway(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const mongo = await openMongo('posthorn-gateway', context);
  await openOpsServer(context, () => lifecycle.isReady() && mongo.isConnected());
  const kafka = await openRecordLog('posthorn-gateway', context);
  const budgets = createMemoryBudgets(registry);
  const caches = openCaches(context, mongo.db, budgets);
  const limits = openRateLimits(context, caches.redis, budgets);
  const { wrongKeys } = limits;
  const requestBytes = bytesOfMib(config.REQUEST_MIB);
  const memory = createRequestMemory(requestBytes);
  budgets.add('requests', requestBytes, memory.usedBytes);
  const app = createApp({
    authenticate: openAuthentication(context, { db: mongo.db, caches, wrongKeys, budgets }),
    limits,
    memory,
    trustedProxies: config.TRUSTED_PROXIES,
    metrics: createHttpMetrics(registry),
    logger,
    routes: await openRoutes(context, mongo.db, kafka, caches, budgets),
  });
  watchDependencies(registry, {
    mongodb: mongo.isConnected,
    kafka: kafka.log.isConnected,
    redis: caches.isRedisUp,
  });
  await openPort(context, app);
}

async function openRoutes(
  context: Context,
  db: mongo.Db,
  { log, topics }: Kafka,
  caches: Caches,
  budgets: MemoryBudgets,
): Promise<Route[]> {
  const { config, logger, registry } = context;
  const { invalidate, webhooks } = caches;
  const messages = createMessageStore(db);
  const topic = topics.messageCreated;
  const outbox = await openOutbox(context, { db, log, messages, topic, budgets });
  const circuits = createOpenCircuits(caches.redis, config.REDIS_PREFIX, systemClockMs);
  const background = openBackground(context, {
    db,
    log,
    invalidate,
    webhooks,
    circuits,
    budgets,
    retryDueTopic: topics.retryDue,
  });

  const shared = { db, newId: systemIds, nowMs: systemClockMs, logger };
  const deliveries = createDeliveryStore(db);
  const acceptDeps = { ...shared, ...outbox, ...caches, messages, deliveries };
  const accept = openAccept(context, acceptDeps, budgets);
  const queries = { messages: createMessageQueries(db), deliveries: createDeliveryQueries(db) };
  const stores = { ...queries, ...caches, ...background };
  return apiRoutes({
    ...shared,
    ...stores,
    policy: egressPolicyOf(config),
    accept,
    acceptOnce: createAcceptOnce({ ...shared, ...stores, accept, registry }),
    changeWebhook: createChangeWebhook({ ...shared, ...caches }),
    startResend: createStartResend({ ...shared, ...stores }),
    readHealth: createReadHealth({
      ...shared,
      ...stores,
      circuits,
      flows: createEndpointFlows(caches.redis, config.REDIS_PREFIX, systemClockMs),
      concurrency: concurrencyBoundsOf(config),
    }),
  });
}

async function openPort({ config, logger, lifecycle }: Context, app: Express): Promise<void> {
  const { HOST: host, PORT: port, DRAIN_TIMEOUT_MS: drainMs } = config;
  const server = createHardenedServer(app);
  await listen(server, { host, port, setting: 'PORT' });
  lifecycle.onStop('http', () => closeServer(server, drainMs));
  logger.info({ host, port }, 'listening');
}
