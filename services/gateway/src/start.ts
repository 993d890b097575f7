import { startTicker } from '@posthorn/platform/async/loop.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createLinkStore, type LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { UNIQUE_INDEXES } from '@posthorn/platform/mongo/create-indexes.ts';
import { openClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { awaitUniqueIndexes } from '@posthorn/platform/mongo/indexes.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { openIncidentReports } from '@posthorn/platform/records/operator-incidents.ts';
import { connectRedis, redisAccessOf, type RedisClient } from '@posthorn/platform/redis/connect.ts';
import { measureCommands } from '@posthorn/platform/redis/commands.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import {
  announce,
  type Invalidate,
  type Invalidation,
  listenForInvalidations,
} from '@posthorn/platform/redis/invalidations.ts';
import {
  createLiveAttempts,
  listenForLiveAttempts,
  type LiveAttempts,
  type LiveNews,
} from '@posthorn/platform/redis/live-attempts.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import {
  monotonicClockMs,
  systemClockMs,
  systemIds,
} from '@posthorn/platform/service/clock-and-ids.ts';
import { egressPolicyOf } from '@posthorn/platform/security/egress.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans } from '@posthorn/platform/service/spans.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import type { mongo } from 'mongoose';
import { performance } from 'node:perf_hooks';
import { createApp } from './app.ts';
import type { GatewayConfig } from './config.ts';
import { openDashboard } from './dashboard/dashboard.ts';
import { createPortalSettings, type PortalSettingsStore } from './keys/portal-settings.ts';
import { concurrencyBoundsOf } from './history/health.ts';
import { openRecordRequest } from './http/audit-requests.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { openPort } from './http/open-port.ts';
import { openRequestDeadlines, READ_WITHIN_MS } from './http/request-deadlines.ts';
import { addressOf, createRequestMemory, type RequestMemory } from './http/request-memory.ts';
import type { Route } from './http/route.ts';
import { type CompanyRests, createCompanyRests, createTurns, type Turns } from './limits/turns.ts';
import { type Authenticate, createAuthentication, createLastUsed } from './keys/authenticate.ts';
import type { ConfineToApp } from './keys/rights.ts';
import { createQuotas, describeNearQuota, type Quotas } from './projects/quotas.ts';
import { createRateLimits, type RateLimits, type WrongKeys } from './limits/rate-limits.ts';
import { createRequestsUnderWay } from './limits/requests-under-way.ts';
import { apiRoutes } from './routes/all.ts';
import { createUseCases, openSteps, type StepConnections } from './use-cases.ts';
import {
  createCompanyKeys,
  createFindPublicKeys,
  type FindPublicKeys,
} from './webhooks/signing-keys.ts';

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

export interface GatewayRedis {
  client: RedisClient;
  isConnected: () => boolean;
  invalidations: Invalidations;
  live: LiveAttempts;
  /** Calls it for all news of attempts that a dispatcher sends. */
  onNews: (hear: (news: LiveNews) => void) => void;
}

export interface Invalidations {
  invalidate: Invalidate;
  /** Registers a cache of this process. */
  addCache: (cache: InvalidatedCache) => void;
}

export interface InvalidatedCache {
  /** Called for each change, here or in another process. */
  forget: (invalidation: Invalidation) => void;
  /** Called when announcements may have been missed. Without it, entries stay until they expire. */
  forgetAll?: () => void;
}

/** Connects to Redis, and joins the channel on which processes announce changes to each other's caches. */
export function openRedis({
  config,
  logger,
  lifecycle,
  registry,
}: ServiceContext<GatewayConfig>): GatewayRedis {
  const access = redisAccessOf(config);
  const client = measureCommands(registry, connectRedis(access, logger));
  // A connection that has subscribed to a channel takes no other commands.
  const subscriber = connectRedis(access, logger);
  lifecycle.onStop('redis', () => {
    client.disconnect();
    subscriber.disconnect();
  });
  const caches: InvalidatedCache[] = [];
  const forget = (invalidation: Invalidation): void => {
    for (const cache of caches) cache.forget(invalidation);
  };
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: forget,
    onMissed: () => {
      for (const cache of caches) cache.forgetAll?.();
    },
  });
  return {
    client,
    live: createLiveAttempts(client, config.REDIS_PREFIX, systemClockMs),
    onNews: (onNews) => {
      listenForLiveAttempts(subscriber, config.REDIS_PREFIX, { onNews, logger });
    },
    isConnected: () => client.status === 'ready',
    invalidations: {
      async invalidate(...changed) {
        changed.forEach(forget);
        await announce(client, config.REDIS_PREFIX, changed);
      },
      addCache: (cache) => caches.push(cache),
    },
  };
}

interface AuthenticationDeps {
  db: mongo.Db;
  invalidations: Pick<Invalidations, 'addCache'>;
  wrongKeys: WrongKeys;
  budgets: MemoryBudgets;
}

/** Opens the check of API keys with its cache, from which a key is dropped when any gateway revokes it. */
export function openAuthentication(
  { config, lifecycle, logger }: ServiceContext<GatewayConfig>,
  { db, invalidations, wrongKeys, budgets }: AuthenticationDeps,
): Authenticate {
  const { findKey, noteUse } = createCompanyStore(db);
  const lastUsed = createLastUsed({ write: noteUse, nowMs: systemClockMs, logger });
  const cacheBytes = memoryShare('gateway', 'api_key_cache', config.MEMORY_MIB);
  const { authenticate, forget, usedBytes } = createAuthentication({
    findKey,
    wrongKeys,
    onUsed: lastUsed.note,
    cacheBytes,
    nowMs: systemClockMs,
  });
  // The id of an invalidated key is its hash.
  invalidations.addCache({
    forget: ({ id }) => {
      forget(id);
    },
  });
  budgets.add('api_key_cache', cacheBytes, usedBytes);
  lastUsed.start();
  lifecycle.onStop('last use of keys', lastUsed.stop);
  return authenticate;
}

/** Opens the quotas, and tells the operator of companies that are near one. */
export function openQuotas(
  context: ServiceContext<GatewayConfig>,
  { records, topics }: Pick<OpenRecordLog, 'records' | 'topics'>,
): Quotas {
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  return createQuotas({
    limits: { ...context.config, ...FIXED_QUOTAS },
    monotonicMs: monotonicClockMs,
    onNear(near) {
      const { companyId } = near;
      report({ type: 'quota.near', companyId, webhookId: null, detail: describeNearQuota(near) });
    },
  });
}

/** Ten a second: no person's page asks for more, and the requests of visitors count for their company too. */
const VISIT_PER_MINUTE = 600;

/** Opens the configured limits, which share their counts until the gateway stops. */
export function openRateLimits(
  { config, logger, registry, lifecycle }: ServiceContext<GatewayConfig>,
  redis: RedisClient,
  budgets: MemoryBudgets,
): RateLimits {
  const countsBytes = memoryShare('gateway', 'rate_counts', config.MEMORY_MIB);
  const rateLimits = createRateLimits({
    redis,
    prefix: config.REDIS_PREFIX,
    limits: {
      company: config.RATE_LIMIT_COMPANY_PER_MINUTE,
      visit: VISIT_PER_MINUTE,
      address: config.RATE_LIMIT_ADDRESS_PER_MINUTE,
      wrongKeys: config.WRONG_KEYS_PER_MINUTE,
    },
    countsBytes,
    registry,
    logger,
    nowMs: systemClockMs,
  });
  budgets.add('rate_counts', countsBytes, rateLimits.usedBytes);
  rateLimits.start();
  lifecycle.onStop('rate limits', rateLimits.stop);
  return rateLimits;
}

/** 256 of one address, with bodies of 4 KiB. */
const SIGN_INS_BYTES = 4 * 1_048_576;
/** 1,536 requests of one address. */
const UNKNOWN_CALLERS_BYTES = 12 * 1_048_576;

export interface HeldByRequests {
  /** What requests of known companies hold. */
  memory: RequestMemory;
  /** What sign-ins hold; client addresses share it. Apart: who sends half of them delays no request with a key. */
  signIns: RequestMemory;
  /** What requests hold that wait for the look-up of their key; client addresses share it. */
  unknownCallers: RequestMemory;
}

/** Creates the memory of requests, of known companies with the budget of the settings. */
export function openRequestMemory(
  { config }: Pick<ServiceContext<GatewayConfig>, 'config'>,
  budgets: MemoryBudgets,
): HeldByRequests {
  const open = (part: string, bytes: number, ownerOf?: typeof addressOf): RequestMemory => {
    const memory = createRequestMemory(bytes, ownerOf);
    budgets.add(part, bytes, memory.usedBytes);
    return memory;
  };
  return {
    memory: open('requests', memoryShare('gateway', 'requests', config.MEMORY_MIB)),
    signIns: open('sign_ins', SIGN_INS_BYTES, addressOf),
    unknownCallers: open('unknown_callers', UNKNOWN_CALLERS_BYTES, addressOf),
  };
}

export interface OpenTurns {
  turns: Turns;
  rests: CompanyRests;
}

const TICK_EVERY_MS = 100;

/** Creates the turns of the gateway, and the rests between them. They hold until the process ends. */
export function openTurns(): OpenTurns {
  const rests = createCompanyRests(monotonicClockMs);
  const turns = createTurns({
    inNextRound: setImmediate,
    after: (ms, run) => void setTimeout(run, ms),
    rests,
    monotonicMs: monotonicClockMs,
  });
  let before = performance.eventLoopUtilization();
  startTicker(TICK_EVERY_MS, () => {
    const now = performance.eventLoopUtilization();
    rests.tick(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  });
  return { turns, rests };
}
