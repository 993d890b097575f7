import type { Route } from '../../http/request/route.ts';
import { apiKeyRoutes, type ApiKeyDeps } from './api-keys.ts';
import { appCountsRoute, type AppCountsDeps } from './app-counts.ts';
import { appRoutes, type AppRouteDeps } from './apps.ts';
import { auditEventRoutes, type AuditEventDeps } from './audit-events.ts';
import { circuitRoutes, type CircuitDeps } from './circuits.ts';
import { findAppsRoute, type FindAppsDeps } from './find-apps.ts';
import { messageRoutes, type HistoryDeps } from './messages.ts';
import { overviewRoutes, type OverviewDeps } from './overview.ts';
import { portalLinkRoutes, type PortalLinkDeps } from './portal/portal-links.ts';
import { portalSettingsRoutes, type PortalSettingsDeps } from './portal/portal-settings.ts';
import { projectRoutes, type ProjectDeps } from './projects.ts';
import { resendFailedRoutes, type ResendFailedDeps } from './resend-failed.ts';
import { resendRoutes, type ResendRouteDeps } from './resends.ts';
import { signingKeyRoutes, type SigningKeyDeps } from './signing-keys.ts';
import { sourceIpsRoute, type SourceIpsDeps } from './source-ips.ts';
import { webhookActionRoutes, type WebhookActionDeps } from './webhooks/webhook-actions.ts';
import { statsRoutes, type StatsDeps } from './stats.ts';
import { createMessageRoute, type CreateMessageDeps } from './create-message.ts';
import { findWebhooksRoute, type FindWebhooksDeps } from './webhooks/find-webhooks.ts';
import { webhookRoutes, type WebhookRouteDeps } from './webhooks/webhooks.ts';

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
