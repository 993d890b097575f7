import type { Gateway } from '../gateway.ts';
import type { Route } from '../http/route.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { appCountsRoute, appRoutes, findAppsRoute } from './apps.ts';
import { auditEventRoutes } from './audit-events.ts';
import { deliveryFilterRoutes } from './deliveries-by-filter.ts';
import { deliveryRoutes } from './deliveries.ts';
import { eventTypeDocumentRoutes } from './event-type-documents.ts';
import { eventTypeRoutes } from './event-types.ts';
import { testFilterRoute } from './filters.ts';
import { holdRoutes } from './holds.ts';
import { messageBatchRoutes } from './message-batches.ts';
import { messageRoutes } from './messages.ts';
import { overviewRoutes } from './overview.ts';
import { portalRoutes } from './portal.ts';
import { peopleRoutes } from './people.ts';
import { invitationRoutes } from './invitations.ts';
import { orderingKeyRoutes } from './ordering-keys.ts';
import { projectRoutes } from './projects.ts';
import { replayRoutes, resendFailedRoutes, resendRoutes } from './resends.ts';
import { signingKeyRoutes } from './signing-keys.ts';
import { sourceIpsRoute } from './source-ips.ts';
import { circuitRoutes, statsRoutes } from './stats.ts';
import { findWebhooksRoute, webhookActionRoutes, webhookRoutes } from './webhooks.ts';

/** Every route of the API, in the order of the OpenAPI document. A new file of routes is one more line. */
const ROUTES: ((gateway: Gateway) => Route | Route[])[] = [
  projectRoutes,
  appRoutes,
  eventTypeRoutes,
  eventTypeDocumentRoutes,
  webhookRoutes,
  webhookActionRoutes,
  holdRoutes,
  orderingKeyRoutes,
  resendFailedRoutes,
  replayRoutes,
  testFilterRoute,
  messageRoutes,
  messageBatchRoutes,
  deliveryRoutes,
  deliveryFilterRoutes,
  resendRoutes,
  sourceIpsRoute,
  apiKeyRoutes,
  signingKeyRoutes,
  auditEventRoutes,
  statsRoutes,
  overviewRoutes,
  circuitRoutes,
  findAppsRoute,
  appCountsRoute,
  findWebhooksRoute,
  portalRoutes,
  peopleRoutes,
  invitationRoutes,
];

export function apiRoutes(gateway: Gateway): Route[] {
  return ROUTES.flatMap((routesOf) => routesOf(gateway));
}
