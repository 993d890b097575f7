import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createAuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { EndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Spans } from '@posthorn/platform/service/spans.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import type { AcceptMessage } from './accept/accept-message.ts';
import type { IdempotentAccept } from './accept/idempotency.ts';
import { type Accept, openAccept } from './accept/start-accept.ts';
import type { GatewayConfig } from './config.ts';
import { portalUseCases } from './keys/portal-links.ts';
import type { PortalSettingsStore } from './keys/portal-settings.ts';
import { createCountApps, createReadCircuits, createReadPending } from './history/counts.ts';
import { createFindById } from './history/find-by-id.ts';
import { type ConcurrencyBounds, createReadHealth } from './history/health.ts';
import { createReadOverview } from './history/overview.ts';
import { createReadWebhookOutlines } from './history/webhook-outlines.ts';
import type { RequestQueue } from './http/route.ts';
import type { CompanyRests } from './limits/turns.ts';
import { createApiKeys } from './keys/api-keys.ts';
import { createConfineToApp } from './keys/rights.ts';
import type { Quotas } from './projects/quotas.ts';
import { openOutbox } from './outbox/outbox.ts';
import { createApps, createFindApps, createHasApp, createNotStoredByApp } from './projects/apps.ts';
import { createProjects } from './projects/projects.ts';
import { openRemovals, type RemoveTree } from './projects/remove-tree.ts';
import { openResends, type Resends } from './resend/run-resends.ts';
import type { StartResend } from './resend/start-resend.ts';
import type { ApiDeps } from './routes/all.ts';
import type { GatewayRedis, Invalidations } from './start.ts';
import { createFindWebhooks, createListWebhooks } from './webhooks/find-webhooks.ts';
import type { CompanyKeys } from './webhooks/signing-keys.ts';
import {
  createChangeWebhook,
  createCreateWebhook,
  createDeleteWebhook,
  createRotateSecret,
  createSendTestMessage,
} from './webhooks/webhooks.ts';

interface UseCaseDeps {
  db: Database;
  webhooks: WebhookStore;
  messages: MessageQueries;
  deliveries: DeliveryQueries;
  resends: Pick<ResendStore, 'findShown' | 'listShown' | 'askToAbort'>;
  circuits: Pick<OpenCircuits, 'read' | 'list'>;
  flows: Pick<EndpointFlows, 'read'>;
  concurrency: ConcurrencyBounds;
  invalidate: Invalidations['invalidate'];
  accept: AcceptMessage['accept'];
  acceptIdempotent: IdempotentAccept;
  acceptQueue: RequestQueue;
  remove: RemoveTree;
  quotas: Quotas;
  /** Of the custom headers of one webhook, names and values together. */
  maxHeaderBytes: number;
  /** SOURCE_IPS. */
  sourceIps: readonly string[];
  /** PUBLIC_URL. */
  publicUrl: string | undefined;
  links: Pick<LinkStore, 'insert' | 'countLive' | 'revoke' | 'listLive'>;
  portalSettings: PortalSettingsStore;
  companyKeys: CompanyKeys;
  startResend: StartResend;
  policy: EgressPolicy;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  logger: Logger;
}

/** Creates what the routes of the API call. */
export function createUseCases(deps: UseCaseDeps): ApiDeps {
  const { db, messages, deliveries, quotas, newId, nowMs, invalidate } = deps;
  const projects = createProjects({ db, quotas, newId, nowMs });
  const apps = createApps({ db, quotas, projects, newId, nowMs });
  const apiKeys = createApiKeys({ db, quotas, newId, nowMs, invalidate });
  return {
    policy: deps.policy,
    maxHeaderBytes: deps.maxHeaderBytes,
    sourceIps: deps.sourceIps,
    logger: deps.logger,
    projects,
    apps,
    apiKeys,
    companyKeys: deps.companyKeys,
    confineToApp: createConfineToApp({
      apps,
      webhooks: deps.webhooks,
      messages,
      deliveries,
      resends: deps.resends,
      apiKeys,
    }),
    messages,
    deliveries,
    webhooks: deps.webhooks,
    resends: deps.resends,
    remove: deps.remove,
    acceptIdempotent: deps.acceptIdempotent,
    acceptQueue: deps.acceptQueue,
    ...webhookUseCases(deps, { projects, apps }),
    ...portalUseCases(deps, { apps, apiKeys }),
    startResend: deps.startResend,
    readHealth: readHealthOf(deps),
    auditEvents: createAuditStore(db),
    ...overviewUseCases(deps, { projects, apps, apiKeys }),
    hasApp: createHasApp(db),
    nowMs,
  };
}

type OverviewUseCases = Pick<
  ApiDeps,
  | 'stats'
  | 'readOverview'
  | 'readOutlines'
  | 'readCircuits'
  | 'findApps'
  | 'findWebhooks'
  | 'countApps'
  | 'findById'
>;

function overviewUseCases(
  deps: UseCaseDeps,
  { projects, apps, apiKeys }: Pick<ApiDeps, 'projects' | 'apps' | 'apiKeys'>,
): OverviewUseCases {
  const { db, nowMs } = deps;
  const stats = createStatsQueries(db);
  const readOutlines = createReadWebhookOutlines(db);
  const readPending = createReadPending(db);
  const readCircuits = createReadCircuits({ circuits: deps.circuits, readOutlines });
  return {
    stats,
    readOutlines,
    readCircuits,
    findApps: createFindApps(db),
    countApps: createCountApps({ ...deps, apps, stats }),
    findWebhooks: createFindWebhooks(db),
    readOverview: createReadOverview({ stats, readPending, readOutlines, readCircuits, nowMs }),
    findById: createFindById({ ...deps, projects, apps, hasKey: apiKeys.has, readOutlines }),
  };
}

type WebhookUseCases = Pick<
  ApiDeps,
  | 'createWebhook'
  | 'listWebhooks'
  | 'changeWebhook'
  | 'deleteWebhook'
  | 'rotateSecret'
  | 'sendTestMessage'
>;

function webhookUseCases(
  deps: UseCaseDeps,
  { projects, apps }: Pick<ApiDeps, 'projects' | 'apps'>,
): WebhookUseCases {
  const { db, webhooks, messages, deliveries, newId, nowMs, logger } = deps;
  const { accept, remove, quotas, invalidate } = deps;
  const changeWebhook = createChangeWebhook({ webhooks, nowMs, invalidate });
  return {
    createWebhook: createCreateWebhook({
      projects,
      apps,
      webhooks,
      quotas,
      newId,
      nowMs,
      invalidate,
    }),
    listWebhooks: createListWebhooks({ apps, webhooks, logger }),
    changeWebhook,
    deleteWebhook: createDeleteWebhook({ db, remove, invalidate }),
    rotateSecret: createRotateSecret({ changeWebhook, nowMs }),
    sendTestMessage: createSendTestMessage({ messages, deliveries, webhooks, accept, nowMs }),
  };
}

function readHealthOf(deps: UseCaseDeps): ApiDeps['readHealth'] {
  const { webhooks, messages, deliveries, circuits, flows, concurrency, nowMs } = deps;
  return createReadHealth({
    webhooks,
    messages,
    deliveries,
    circuits,
    flows,
    concurrency,
    nowMs,
  });
}

export interface StepConnections {
  db: Database;
  /** The same for what requests read. */
  requestDb: Database;
  kafka: OpenRecordLog;
  redis: GatewayRedis;
  budgets: MemoryBudgets;
  spans: Spans | null;
  rests: Pick<CompanyRests, 'pauseMs'>;
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
export async function openSteps(
  context: ServiceContext<GatewayConfig>,
  { db, requestDb, kafka, redis, budgets, spans, rests }: StepConnections,
  { vault, webhooks, circuits }: StepDeps,
): Promise<Steps> {
  const { invalidations } = redis;
  const { records, topics } = kafka;
  const messages = createMessageStore(db);
  const hasApp = createHasApp(requestDb);
  const outbox = await openOutbox(context, {
    db,
    kafka,
    redis,
    messages,
    budgets,
    spans,
    pauseMs: rests.pauseMs,
  });
  const remove = openRemovals(context, { db, invalidate: invalidations.invalidate });
  const { resends, startResend } = openResends(context, {
    db,
    requestDb,
    records,
    retryDueTopic: topics.retryDue,
    webhooks,
    hasApp,
    circuits,
    budgets,
  });
  const acceptSteps = openAccept(context, {
    db,
    requestDb,
    vault,
    webhooks,
    notStoredByApp: createNotStoredByApp(requestDb),
    invalidations,
    outbox,
    budgets,
    spans,
  });
  return { ...acceptSteps, remove, resends, startResend };
}
