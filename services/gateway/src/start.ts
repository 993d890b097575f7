import { timeMsOf } from '@posthorn/domain/ids.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createLoop, startTicker } from '@posthorn/platform/async/loop.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import { warmUp } from '@posthorn/platform/memory/warm-up.ts';
import { readRecentUse } from '@posthorn/platform/mongo/messages/recent-use.ts';
import {
  createAuditLog,
  createAuditMetrics,
  createAuditStore,
} from '@posthorn/platform/mongo/companies/audit-log.ts';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createEventTypeStore } from '@posthorn/platform/mongo/companies/event-types.ts';
import { createCreationKeyStore } from '@posthorn/platform/mongo/companies/creation-keys.ts';
import { createInvitationStore } from '@posthorn/platform/mongo/companies/invitations.ts';
import { createLinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import { createPeopleStore } from '@posthorn/platform/mongo/companies/people.ts';
import { createRemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { createFilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createSelectedDeliveries } from '@posthorn/platform/mongo/messages/selected-deliveries.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createRequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import { dueNowMs } from '@posthorn/platform/mongo/work-notes.ts';
import { createReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { createSequenceQueries } from '@posthorn/platform/mongo/messages/sequence-queries.ts';
import { createSequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import {
  createLiveAttempts,
  listenForLiveAttempts,
} from '@posthorn/platform/redis/live-attempts.ts';
import { createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { announceWork, type WakeWork } from '@posthorn/platform/redis/wake-work.ts';
import { monotonicClockMs as monotonicMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createSignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import { egressPolicyOf } from '@posthorn/platform/security/egress.ts';
import { openIncidentReports } from '@posthorn/platform/records/operator-incidents.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from './app.ts';
import { type GatewayConfig, signInConfigOf } from './config.ts';
import { createEventTypes } from './catalogue/event-types.ts';
import { createImportEventTypes } from './catalogue/import-event-types.ts';
import { createDashboard } from './dashboard/dashboard.ts';
import { LiveStreams } from './dashboard/live.ts';
import { createIdentification } from './keys/identify.ts';
import type { Gateway } from './gateway.ts';
import { concurrencyBoundsOf } from './history/health.ts';
import {
  createReadEnabledWebhooks,
  createReadWebhookOutlines,
} from './history/webhook-outlines.ts';
import { createRecordRequest, refusalOf } from './http/audit-requests.ts';
import { createCreateOnce } from './http/creations.ts';
import { openPort } from './http/harden-server.ts';
import { createHttpMetrics } from './http/http-metrics.ts';
import { createRequestDeadlines, DEADLINES_EVERY_MS } from './http/request-deadlines.ts';
import { addressOf, createRequestMemory, type RequestMemory } from './http/request-memory.ts';
import { createApiKeys } from './keys/api-keys.ts';
import { type Authenticate, createAuthentication, createLastUsed } from './keys/authenticate.ts';
import { createPortalSettings } from './keys/portal-settings.ts';
import { confineToApp } from './keys/rights.ts';
import { createLogOutByIssuer } from './people/back-channel.ts';
import { createIssuer } from './people/issuer.ts';
import { createPersonSessions } from './people/person-sessions.ts';
import { ATTEMPT_KEY_USE, createAttemptCookies } from './people/sign-in-attempt.ts';
import { createSignInMetrics } from './people/sign-in-metrics.ts';
import { createPeopleSignIn } from './people/sign-in.ts';
import { openIngestLag } from './ingest/ingest-lag.ts';
import { type RateLimits } from './limits/rate-limits.ts';
import { createRequestsUnderWay } from './limits/requests-under-way.ts';
import { createApps } from './projects/apps.ts';
import { createProjects } from './projects/projects.ts';
import { createQuotas, describeNearQuota, type Quotas, FIXED_QUOTAS } from './projects/quotas.ts';
import { createRemoveTree } from './projects/remove-tree.ts';
import { createResolveUids } from './projects/uids.ts';
import { createStartResend } from './resend/start-resend.ts';
import { apiRoutes } from './routes/all.ts';
import { openHolds } from './waiting/open-holds.ts';
import { createStartCancellation, type StartCancellation } from './webhooks/cancel-selected.ts';
import { createCompanyKeys, createFindPublicKeys } from './webhooks/signing-keys.ts';
import {
  type Basis,
  openAccept,
  openBasis,
  openOutbox,
  openPayloadChecks,
  openRateLimits,
  openUids,
} from './open-acceptance.ts';

type Context = ServiceContext<GatewayConfig>;

/** Opens the gateway, from the connections to the port. The part that is opened last is stopped first. */
export async function startGateway(context: Context): Promise<void> {
  const { config, logger, registry } = context;
  const basis: GatewayBasis = { ...(await openBasis(context, 'gateway')), context };
  const requests = await openRequests(basis);
  const streams = openLive(basis);
  const opened = await openGateway(basis);
  const gateway: Gateway = { ...opened, ingestLag: openIngestLag(basis) };
  const identification = createIdentification({
    ...gateway,
    ...requests,
    encryptionKeys: config.ENCRYPTION_KEYS,
  });
  // The id of an invalidated portal session is the id of its link.
  basis.caches.onInvalidation(identification.portalSessions.forget);
  const app = createApp({
    ...basis,
    ...requests,
    routes: apiRoutes(gateway),
    identify: identification.identify,
    dashboard: createDashboard({
      ...gateway,
      ...requests,
      ...identification,
      ...openPeople(basis, gateway, requests),
      logger,
      wrongKeys: requests.limits.wrongKeys,
      streams,
    }),
    underWay: createRequestsUnderWay(),
    resolveUids: createResolveUids(gateway.uids.idOf),
    confineToApp: (owner, ids, nextSlice) => confineToApp(gateway, owner, ids, nextSlice),
    findPublicKeys: gateway.findPublicKeys,
    trustedProxies: config.TRUSTED_PROXIES,
    metrics: createHttpMetrics(registry),
    logger,
  });
  await openPort(context, app);
}

/** The gateway reads more settings than other processes that accept messages. */
type GatewayBasis = Basis & { context: Context };

type RequestPart = 'requests' | 'sign_ins' | 'unknown_callers';

/** Ten a second: no person's page sends more, and the requests of visitors count for their company too. */
const VISIT_PER_MINUTE = 600;

type Requests = Awaited<ReturnType<typeof openRequests>>;

/** Opens everything that checks and bounds a request before it reaches its route. */
async function openRequests(basis: GatewayBasis) {
  const { context, requestDb, budgets, nowMs, newId } = basis;
  const openMemory = (part: RequestPart, ownerOf?: typeof addressOf): RequestMemory => {
    const bytes = memoryShare('gateway', part, context.config.MEMORY_MIB);
    const memory = createRequestMemory(bytes, ownerOf);
    budgets.add(part, bytes, memory.usedBytes);
    return memory;
  };
  const { config } = context;
  const limits = openRateLimits(basis, {
    company: config.RATE_LIMIT_COMPANY_PER_MINUTE,
    visit: VISIT_PER_MINUTE,
    address: config.RATE_LIMIT_ADDRESS_PER_MINUTE,
    wrongKeys: config.WRONG_KEYS_PER_MINUTE,
  });
  // The deadlines hold until the process ends, also while requests drain.
  const deadlines = createRequestDeadlines(monotonicMs);
  startTicker(DEADLINES_EVERY_MS, deadlines.tick);
  const log = createAuditLog({
    store: createAuditStore(requestDb),
    refusalOf,
    observer: createAuditMetrics(context.registry, context.logger),
    newId,
    nowMs,
  });
  return {
    limits,
    authenticate: await openAuthentication(basis, limits),
    deadlines,
    /** The memory of requests of known companies. */
    memory: openMemory('requests'),
    /** The memory of sign-ins, apart: a client that sends half of them delays no request with a key. */
    signIns: openMemory('sign_ins', addressOf),
    /** The memory of requests that wait for the look-up of their key. */
    unknownCallers: openMemory('unknown_callers', addressOf),
    auditLog: log,
    recordRequest: createRecordRequest(log),
    createOnce: createCreateOnce({
      keys: createCreationKeyStore(requestDb),
      vault: basis.vault,
      newId,
      logger: context.logger,
    }),
  };
}

/** Keys that were not used for so long are loaded when they are. */
const KEY_USED_WITHIN_MS = 3_600_000;

/**
 * Opens the check of API keys with its cache, which has the keys that were used last, and from which a key is dropped when
 * any gateway revokes it.
 */
async function openAuthentication(
  basis: GatewayBasis,
  { wrongKeys }: RateLimits,
): Promise<Authenticate> {
  const { config, lifecycle, logger } = basis.context;
  const { findKeys, usedSince, noteUse } = createCompanyStore(basis.requestDb);
  const readKey = createReadTogether(findKeys);
  const lastUsed = createLastUsed({ write: noteUse, nowMs: basis.nowMs, logger });
  const cacheBytes = memoryShare('gateway', 'api_key_cache', config.MEMORY_MIB);
  const authentication = createAuthentication({
    findKey: async (keyHash) => (await readKey(keyHash)) ?? null,
    wrongKeys,
    onUsed: lastUsed.note,
    cacheBytes,
    areChangesFollowed: basis.caches.areChangesFollowed,
    nowMs: basis.nowMs,
  });
  basis.caches.add('api_keys', authentication.cache);
  basis.budgets.add('api_key_cache', cacheBytes, authentication.usedBytes);
  await warmUp({
    name: 'api_keys',
    whenFollowed: basis.caches.whenFollowed,
    async read() {
      const { companyIds } = await readRecentUse(basis.requestDb);
      return usedSince(companyIds, basis.nowMs() - KEY_USED_WITHIN_MS);
    },
    load: authentication.load,
    isFull: () => authentication.usedBytes() > cacheBytes / 2,
    logger,
  });
  lastUsed.start();
  lifecycle.onStop('last use of keys', lastUsed.stop);
  return authentication.authenticate;
}

/** Opens the stores and the parts that work while the gateway runs. */
async function openGateway(basis: GatewayBasis): Promise<Omit<Gateway, 'ingestLag'>> {
  const { context, requestDb: db, vault, nowMs, newId } = basis;
  const { config, logger } = context;
  const { invalidate } = basis.caches;
  const quotas = openQuotas(basis);
  const uids = openUids(basis);
  const projects = createProjects({ db, uids, quotas, invalidate, nowMs });
  const apps = createApps({ db, uids, quotas, projects, nowMs, invalidate });
  const payloadChecks = openPayloadChecks(basis);
  const eventTypes = createEventTypes({
    store: createEventTypeStore(db),
    checks: payloadChecks,
    projects,
    apps,
    quotas,
    invalidate,
    nowMs,
  });
  const parts = { ...openStores(basis), quotas, uids, projects, apps, eventTypes };
  const outbox = await openOutbox(basis);
  const wake: WakeWork = (kind) => void announceWork(basis.redis.client, config.REDIS_PREFIX, kind);
  const remove = createRemoveTree({
    removals: createRemovalStore(db),
    invalidate,
    wake: () => {
      wake('removals');
    },
    newId,
    monotonicMs,
    sleep,
  });
  const resends = openResends(basis, wake, parts);
  const holds = openHolds({ ...basis, ...parts, wake });
  const accept = await openAccept(basis, { ...parts, payloadChecks }, outbox);
  const signingKeys = createSigningKeyStore(db, vault);
  return {
    ...parts,
    ...resends,
    startCancellation: openCancellations(basis, wake, parts),
    ...holds,
    ...accept,
    importEventTypes: createImportEventTypes(parts),
    policy: egressPolicyOf(config),
    maxHeaderBytes: FIXED_QUOTAS.headerBytes,
    sourceIps: config.SOURCE_IPS ?? [],
    publicUrl: config.PUBLIC_URL,
    hasIssuer: config.OIDC_ISSUER !== undefined,
    personSessions: createPersonSessions({ ...parts, vault, invalidate, newId, nowMs }),
    concurrency: concurrencyBoundsOf(config),
    logger,
    nowMs,
    newId,
    invalidate,
    remove,
    apiKeys: createApiKeys({ db, quotas, nowMs, invalidate }),
    findPublicKeys: createFindPublicKeys(signingKeys, nowMs),
    companyKeys: createCompanyKeys({ store: signingKeys, newId, nowMs, invalidate }),
  };
}

/** Opens what reads and writes MongoDB and Redis for requests. */
function openStores({ context: { config }, requestDb: db, redis, vault, nowMs }: GatewayBasis) {
  return {
    db,
    auditEvents: createAuditStore(db),
    cancellations: createFilterCancellations(db),
    checks: createMessageChecks(db),
    companies: createCompanyStore(db),
    deliveries: createDeliveryQueries(db),
    deliveryStore: createDeliveryStore(db),
    sequences: { ...createSequenceQueries(db), makeDue: createSequenceStore(db).makeDue },
    erasures: createRequestedErasures(db),
    links: createLinkStore(db),
    invitations: createInvitationStore(db),
    people: createPeopleStore(db),
    messages: createMessageQueries(db),
    portalSettings: createPortalSettings(db, nowMs),
    stats: createStatsQueries(db),
    webhooks: createWebhookStore(db, vault),
    selected: createSelectedDeliveries(db),
    readOutlines: createReadWebhookOutlines(db),
    readEnabled: createReadEnabledWebhooks(db),
    holdStates: createHoldStates(db),
    circuits: createOpenCircuits(redis.client, config.REDIS_PREFIX, nowMs),
    flows: createEndpointFlows(redis.client, config.REDIS_PREFIX, nowMs),
  };
}

/** Opens the quotas, which notify the operator of companies that are near one. */
function openQuotas({ context, kafka: { records, topics } }: GatewayBasis): Quotas {
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  return createQuotas({
    limits: { ...context.config, ...FIXED_QUOTAS },
    monotonicMs,
    onNear(near) {
      const { companyId } = near;
      report({ type: 'quota.near', companyId, webhookId: null, detail: describeNearQuota(near) });
    },
  });
}

/** Opens resends, which the retry service sends. */
function openResends(
  { requestDb, db, newId, nowMs }: GatewayBasis,
  wake: WakeWork,
  { webhooks, apps }: Pick<Gateway, 'webhooks' | 'apps'>,
): Pick<Gateway, 'resends' | 'startResend'> {
  const resends = createResendStore(requestDb);
  const startResend = createStartResend({
    webhooks,
    apps,
    resends,
    replays: createReplayStore(requestDb),
    marks: createResendMarks(db),
    wake: () => {
      wake('resends');
    },
    // No message that was accepted before is newer, whatever the database's clock does.
    nowMs: () => timeMsOf(newId('msg')),
    dueNowMs: () => dueNowMs(nowMs()),
  });
  return { resends, startResend };
}

/** Opens cancellations by filter, which the retry service stores in the deliveries. */
function openCancellations(
  { newId, nowMs }: GatewayBasis,
  wake: WakeWork,
  { cancellations }: Pick<Gateway, 'cancellations'>,
): StartCancellation {
  return createStartCancellation({
    cancellations,
    newId,
    nowMs,
    dueNowMs: () => dueNowMs(nowMs()),
    wake: () => {
      wake('cancellations');
    },
  });
}

/** Opens the sign-in of people. Without OIDC_ISSUER the sessions of earlier ones are still known. */
function openPeople(
  { context: { config, registry, logger }, nowMs }: GatewayBasis,
  gateway: Gateway,
  { auditLog, recordRequest }: Pick<Requests, 'auditLog' | 'recordRequest'>,
) {
  const signInConfig = signInConfigOf(config);
  const signInMetrics = createSignInMetrics(registry);
  const sessionMs = config.OIDC_SESSION;
  return {
    oidc: signInConfig && {
      config: signInConfig,
      issuer: createIssuer({ config: signInConfig, metrics: signInMetrics, logger, nowMs }),
    },
    attempts: createAttemptCookies({
      statements: createSignedStatements(config.ENCRYPTION_KEYS, ATTEMPT_KEY_USE),
      publicUrl: config.PUBLIC_URL,
      nowMs,
    }),
    signInMetrics,
    peopleSignIn: createPeopleSignIn({ ...gateway, recordRequest, sessionMs }),
    logOutByIssuer: createLogOutByIssuer({ ...gateway, auditLog }),
  };
}

const LIVE_EVERY_MS = 5_000;
/** Longer than three ticks, so that one late tick ends nothing. */
const WATCHED_MS = 20_000;

/** Opens the streams of attempts. They end when a stop begins, which would otherwise wait for them. */
function openLive({
  context: { config, logger, lifecycle },
  redis,
  nowMs,
}: GatewayBasis): LiveStreams {
  const live = createLiveAttempts(redis.client, config.REDIS_PREFIX, nowMs);
  const streams = new LiveStreams((companyIds) => live.watch(companyIds, WATCHED_MS));
  const onNews = streams.publish.bind(streams);
  listenForLiveAttempts(redis.subscriber, config.REDIS_PREFIX, { onNews, logger });
  const run = (): Promise<void> => streams.tick();
  const loop = createLoop({ name: 'live streams', everyMs: LIVE_EVERY_MS, run, logger });
  loop.start();
  const stop = streams.stop.bind(streams);
  lifecycle.stopping.addEventListener('abort', stop, { once: true });
  lifecycle.onStop('live streams', loop.stop);
  return streams;
}
