import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { openMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { openClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import { UNIQUE_INDEXES } from '@posthorn/platform/mongo/create-indexes.ts';
import { awaitUniqueIndexes } from '@posthorn/platform/mongo/indexes/await-unique-indexes.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import { createLinkStore, type LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans } from '@posthorn/platform/tracing/open-spans.ts';
import { createVault } from '@posthorn/platform/vault/vault.ts';
import type { ConfineToApp } from './api-keys/confine-to-app.ts';
import { openAuthentication } from './api-keys/open-authentication.ts';
import { openRecordRequest } from './api/audit/open-record-request.ts';
import { createUseCases } from './api/create-use-cases.ts';
import { apiRoutes } from './api/routes/api-routes.ts';
import { createApp } from './app.ts';
import type { GatewayConfig } from './config.ts';
import { openDashboard } from './api/dashboard/open-dashboard.ts';
import {
  createPortalSettings,
  type PortalSettingsStore,
} from './api/dashboard/portal/portal-settings.ts';
import { concurrencyBoundsOf } from './history/read-health.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { openPort } from './http/connections/open-port.ts';
import { openRequestDeadlines, READ_WITHIN_MS } from './http/connections/request-deadlines.ts';
import { openRequestMemory } from './http/request/open-request-memory.ts';
import type { Route } from './http/request/route.ts';
import { openTurns } from './http/turns/open-turns.ts';
import { openQuotas } from './limits/open-quotas.ts';
import { FIXED_QUOTAS } from './limits/quotas.ts';
import { createRequestsUnderWay } from './limits/requests-under-way.ts';
import { openRateLimits } from './limits/open-rate-limits.ts';
import { openRedis } from './open-redis.ts';
import { openSteps, type StepConnections } from './api/open-steps.ts';
import { createCompanyKeys } from './webhooks/signing-keys/company-keys.ts';
import { createFindPublicKeys } from './webhooks/signing-keys/find-public-keys.ts';
import type { FindPublicKeys } from './webhooks/signing-keys/public-keys-page.ts';

type Context = ServiceContext<GatewayConfig>;

interface Connections extends StepConnections {
  links: LinkStore;
  portalSettings: PortalSettingsStore;
}

/** Opens the gateway, from the connections to the port. What is opened last is stopped first. */
export async function startGateway(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const spans = await openSpans('posthorn-gateway', context);
  const mongo = await openMongo('posthorn-gateway', context);
  const clock = await openClockWatch(context, mongo.db);
  await openOpsServer(context, () => lifecycle.isReady() && mongo.isConnected() && clock.isRight());
  await awaitUniqueIndexes(context, mongo.db, UNIQUE_INDEXES);
  const kafka = await openRecordLog('posthorn-gateway', context);
  const redis = openRedis(context);
  const budgets = createMemoryBudgets(registry);
  const { db } = mongo;
  const requestDb = mongo.withReadsWithin(READ_WITHIN_MS);
  const limits = openRateLimits(context, redis.client, budgets);
  const { wrongKeys } = limits;
  const people = { db: requestDb, invalidations: redis.invalidations, wrongKeys };
  const authenticate = openAuthentication(context, { ...people, budgets });
  const deadlines = openRequestDeadlines();
  const recordRequest = openRecordRequest(context, requestDb);
  const held = openRequestMemory(context, budgets);
  const links = createLinkStore(requestDb);
  const portalSettings = createPortalSettings(requestDb, systemClockMs);
  const { turns, rests } = openTurns();
  const connections = { db, requestDb, kafka, redis, budgets, spans, rests, links, portalSettings };
  const forPeople = { ...people, authenticate, recordRequest, deadlines };
  const app = createApp({
    ...openDashboard(context, { ...forPeople, ...held, links, portalSettings, redis, limits }),
    clock,
    limits,
    ...held,
    turns,
    rests,
    underWay: createRequestsUnderWay(),
    deadlines,
    recordRequest,
    trustedProxies: config.TRUSTED_PROXIES,
    metrics: createHttpMetrics(registry),
    logger,
    ...(await openApi(context, connections)),
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
  const { requestDb: db, kafka, redis } = connections;
  const vault = createVault(config.ENCRYPTION_KEYS);
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
    maxHeaderBytes: FIXED_QUOTAS.headerBytes,
    sourceIps: config.SOURCE_IPS ?? [],
    publicUrl: config.PUBLIC_URL,
    links: connections.links,
    portalSettings: connections.portalSettings,
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
