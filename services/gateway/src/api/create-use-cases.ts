import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import { createAuditStore } from '@posthorn/platform/mongo/audit/audit-events.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { EndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { RequestQueue } from '../http/request/route.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { AcceptMessage } from '../accept/accept-message.ts';
import type { IdempotentAccept } from '../accept/idempotency/idempotent-accept.ts';
import { createApiKeys } from '../api-keys/api-keys.ts';
import { createConfineToApp } from '../api-keys/confine-to-app.ts';
import { portalUseCases } from './dashboard/portal/portal-use-cases.ts';
import type { PortalSettingsStore } from './dashboard/portal/portal-settings.ts';
import type { ApiDeps } from './routes/api-routes.ts';
import { createReadHealth, type ConcurrencyBounds } from '../history/read-health.ts';
import type { Quotas } from '../limits/quotas.ts';
import type { Invalidations } from '../open-redis.ts';
import { createCountApps } from '../history/overview/count-apps.ts';
import { createFindById } from '../history/overview/find-by-id.ts';
import { createReadCircuits } from '../history/overview/read-circuits.ts';
import { createReadOverview } from '../history/overview/read-overview.ts';
import { createReadPending } from '../history/overview/read-pending.ts';
import { createReadWebhookOutlines } from '../history/overview/webhook-outlines.ts';
import { createApps } from '../projects/apps.ts';
import { createFindApps } from '../projects/find-apps.ts';
import { createHasApp } from '../projects/has-app.ts';
import { createProjects } from '../projects/projects.ts';
import type { RemoveTree } from '../removal/remove-tree.ts';
import type { StartResend } from '../resend/start-resend.ts';
import { createChangeWebhook } from '../webhooks/change-webhook.ts';
import { createCreateWebhook } from '../webhooks/create-webhook.ts';
import { createDeleteWebhook } from '../webhooks/delete-webhook.ts';
import { createFindWebhooks } from '../webhooks/lists/find-webhooks.ts';
import { createListWebhooks } from '../webhooks/lists/list-webhooks.ts';
import type { CompanyKeys } from '../webhooks/signing-keys/company-keys.ts';
import { createRotateSecret } from '../webhooks/rotate-secret.ts';
import { createSendTestMessage } from '../webhooks/send-test-message.ts';

export interface UseCaseDeps {
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
