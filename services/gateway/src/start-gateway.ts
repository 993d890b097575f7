import { openMemberlessGroups } from '@posthorn/platform/memberless-groups/open-memberless-groups.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { openMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { UNIQUE_INDEXES } from '@posthorn/platform/mongo/create-indexes.ts';
import { awaitUniqueIndexes } from '@posthorn/platform/mongo/indexes/await-unique-indexes.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import {
  createWebhookStore,
  type WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createOpenCircuits, type OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans } from '@posthorn/platform/tracing/open-spans.ts';
import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import { createVault, type Vault } from '@posthorn/platform/vault/vault.ts';
import type { mongo } from 'mongoose';
import { openAccept, type Accept } from './accept/open-accept.ts';
import type { ConfineToApp } from './api-keys/confine-to-app.ts';
import { openAuthentication } from './api-keys/open-authentication.ts';
import { openRecordRequest } from './api/audit/open-record-request.ts';
import { createUseCases } from './api/create-use-cases.ts';
import { apiRoutes } from './api/routes/api-routes.ts';
import { createApp } from './app.ts';
import type { GatewayConfig } from './config.ts';
import { openDashboard } from './api/dashboard/open-dashboard.ts';
import { concurrencyBoundsOf } from './history/read-health.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { openPort } from './http/open-port.ts';
import { openRequestDeadlines } from './http/request-deadlines.ts';
import { openRequestMemory } from './http/request/open-request-memory.ts';
import type { Route } from './http/request/route.ts';
import { openTurns } from './http/turns/open-turns.ts';
import { openQuotas } from './limits/open-quotas.ts';
import { createRequestsUnderWay } from './limits/requests-under-way.ts';
import { openRateLimits } from './limits/open-rate-limits.ts';
import { openRedis, type GatewayRedis } from './open-redis.ts';
import { openOutbox } from './outbox/open-outbox.ts';
import { createHasApp, createNotStoredByApp } from './projects/has-app.ts';
import { openRemovals } from './removal/open-removals.ts';
import type { RemoveTree } from './removal/remove-tree.ts';
import { openResends, type Resends } from './resend/open-resends.ts';
import { createCompanyKeys } from './webhooks/signing-keys/company-keys.ts';
import { createFindPublicKeys } from './webhooks/signing-keys/find-public-keys.ts';
import type { FindPublicKeys } from './webhooks/signing-keys/public-keys-page.ts';

type Context = ServiceContext<GatewayConfig>;

interface Connections {
  db: mongo.Db;
  kafka: OpenRecordLog;
  redis: GatewayRedis;
  budgets: MemoryBudgets;
  spans: Spans | null;
}

/** Opens the gateway, from the connections to the port. What is opened last is stopped first. */
export async function startGateway(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const spans = await openSpans('posthorn-gateway', context);
  const mongo = await openMongo('posthorn-gateway', context);
  await openOpsServer(context, () => lifecycle.isReady() && mongo.isConnected());
  await awaitUniqueIndexes(context, mongo.db, UNIQUE_INDEXES);
  const kafka = await openRecordLog('posthorn-gateway', context);
  openMemberlessGroups(context, kafka);
  const redis = openRedis(context);
  const budgets = createMemoryBudgets(registry);
  const { db } = mongo;
  const limits = openRateLimits(context, redis.client, budgets);
  const { invalidations } = redis;
  const { wrongKeys } = limits;
  const authenticate = openAuthentication(context, { db, invalidations, wrongKeys, budgets });
  const deadlines = openRequestDeadlines();
  const recordRequest = openRecordRequest(context, db);
  const forPeople = { db, authenticate, invalidations, wrongKeys, recordRequest, deadlines };
  const app = createApp({
    ...openDashboard(context, forPeople),
    limits,
    memory: openRequestMemory(context, budgets),
    ...openTurns(),
    underWay: createRequestsUnderWay(),
    deadlines,
    recordRequest,
    trustedProxies: config.TRUSTED_PROXIES,
    metrics: createHttpMetrics(registry),
    logger,
    ...(await openApi(context, { db, kafka, redis, budgets, spans })),
  });
  watchDependencies(registry, {
    mongodb: mongo.isConnected,
    kafka: kafka.records.isConnected,
    redis: redis.isConnected,
  });
  await openPort(context, app);
}

interface Api {
  routes: Route[];
  confineToApp: ConfineToApp;
  findPublicKeys: FindPublicKeys;
}

async function openApi(context: Context, connections: Connections): Promise<Api> {
  const { config, logger } = context;
  const { db, kafka, redis } = connections;
  const vault = createVault(config.ENCRYPTION_KEYS, config.SEALED_FORMAT);
  const webhooks = createWebhookStore(db, vault);
  const signingKeys = createSigningKeyStore(db, vault);
  const { invalidate } = redis.invalidations;
  const circuits = createOpenCircuits(redis.client, config.REDIS_PREFIX, systemClockMs);
  const steps = await openSteps(context, connections, { vault, webhooks, circuits });
  const useCases = createUseCases({
    db,
    webhooks,
    messages: createMessageQueries(db),
    deliveries: createDeliveryQueries(db),
    circuits,
    flows: createEndpointFlows(redis.client, config.REDIS_PREFIX, systemClockMs),
    concurrency: concurrencyBoundsOf(config),
    invalidate,
    ...steps,
    quotas: openQuotas(context, kafka),
    maxHeaderBytes: config.QUOTA_HEADER_BYTES,
    sourceIps: config.SOURCE_IPS ?? [],
    companyKeys: createCompanyKeys({
      store: signingKeys,
      newId: systemIds,
      nowMs: systemClockMs,
      invalidate,
    }),
    policy: egressPolicyOf(config),
    newId: systemIds,
    nowMs: systemClockMs,
    logger,
  });
  return {
    routes: apiRoutes(useCases),
    confineToApp: useCases.confineToApp,
    findPublicKeys: createFindPublicKeys(signingKeys, systemClockMs),
  };
}

interface StepDeps {
  vault: Vault;
  webhooks: WebhookStore;
  circuits: OpenCircuits;
}

interface Steps extends Accept, Resends {
  remove: RemoveTree;
}

/** Opens what works on messages, deliveries and removals while the gateway runs. */
async function openSteps(
  context: Context,
  { db, kafka: { records, topics }, redis, budgets, spans }: Connections,
  { vault, webhooks, circuits }: StepDeps,
): Promise<Steps> {
  const { invalidations } = redis;
  const messages = createMessageStore(db);
  const hasApp = createHasApp(db);
  const topic = topics.messageCreated;
  const outbox = await openOutbox(context, {
    db,
    records,
    messages,
    topic,
    budgets,
    spans,
  });
  const remove = openRemovals(context, { db, invalidate: invalidations.invalidate });
  const { resends, startResend } = openResends(context, {
    db,
    records,
    retryDueTopic: topics.retryDue,
    webhooks,
    hasApp,
    circuits,
    budgets,
  });
  const acceptSteps = openAccept(context, {
    db,
    vault,
    webhooks,
    notStoredByApp: createNotStoredByApp(db),
    invalidations,
    outbox,
    budgets,
    spans,
  });
  return { ...acceptSteps, remove, resends, startResend };
}
