import type { Route } from '../http/route.ts';
import { type ApiKeyDeps, apiKeyRoutes } from './api-keys.ts';
import {
  type AppCountsDeps,
  appCountsRoute,
  type AppRouteDeps,
  appRoutes,
  type FindAppsDeps,
  findAppsRoute,
} from './apps.ts';
import { type AuditEventDeps, auditEventRoutes } from './audit-events.ts';
import {
  type CreateMessageDeps,
  createMessageRoute,
  type HistoryDeps,
  messageRoutes,
} from './messages.ts';
import { type OverviewDeps, overviewRoutes } from './overview.ts';
import {
  type PortalLinkDeps,
  portalLinkRoutes,
  type PortalSettingsDeps,
  portalSettingsRoutes,
} from './portal.ts';
import { type ProjectDeps, projectRoutes } from './projects.ts';
import {
  type ResendFailedDeps,
  resendFailedRoutes,
  type ResendRouteDeps,
  resendRoutes,
} from './resends.ts';
import { type SigningKeyDeps, signingKeyRoutes } from './signing-keys.ts';
import { type SourceIpsDeps, sourceIpsRoute } from './source-ips.ts';
import { type CircuitDeps, circuitRoutes, type StatsDeps, statsRoutes } from './stats.ts';
import {
  type FindWebhooksDeps,
  findWebhooksRoute,
  type WebhookActionDeps,
  webhookActionRoutes,
  type WebhookRouteDeps,
  webhookRoutes,
} from './webhooks.ts';

export type ApiDeps = ProjectDeps &
  AppRouteDeps &
  WebhookRouteDeps &
  WebhookActionDeps &
  ResendFailedDeps &
  CreateMessageDeps &
  HistoryDeps &
  ResendRouteDeps &
  ApiKeyDeps &
  SigningKeyDeps &
  SourceIpsDeps &
  AuditEventDeps &
  StatsDeps &
  CircuitDeps &
  FindAppsDeps &
  AppCountsDeps &
  FindWebhooksDeps &
  PortalLinkDeps &
  PortalSettingsDeps &
  OverviewDeps;

/** Every route of the API, in the order of the OpenAPI document. */
export function apiRoutes(deps: ApiDeps): Route[] {
  return [
    ...projectRoutes(deps),
    ...appRoutes(deps),
    ...webhookRoutes(deps),
    ...webhookActionRoutes(deps),
    ...resendFailedRoutes(deps),
    createMessageRoute(deps),
    ...messageRoutes(deps),
    ...resendRoutes(deps),
    sourceIpsRoute(deps),
    ...apiKeyRoutes(deps),
    ...signingKeyRoutes(deps),
    ...auditEventRoutes(deps),
    ...statsRoutes(deps),
    ...overviewRoutes(deps),
    ...circuitRoutes(deps),
    findAppsRoute(deps),
    appCountsRoute(deps),
    findWebhooksRoute(deps),
    ...portalLinkRoutes(deps),
    ...portalSettingsRoutes(deps),
  ];
}
