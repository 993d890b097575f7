import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { AuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import type { InvitationStore } from '@posthorn/platform/mongo/companies/invitations.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import type { PeopleStore } from '@posthorn/platform/mongo/companies/people.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import type { MessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { SequenceQueries } from '@posthorn/platform/mongo/messages/sequence-queries.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { SelectedDeliveries } from '@posthorn/platform/mongo/messages/selected-deliveries.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { EndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { HoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { EventTypes } from './catalogue/event-types.ts';
import type { ImportEventTypes } from './catalogue/import-event-types.ts';
import type { AcceptMessages } from './accept/accept-message.ts';
import type { AcceptOne, KeyedAccept } from './accept/idempotency.ts';
import type { ConcurrencyBounds } from './history/health.ts';
import type { ReadEnabledWebhooks, ReadWebhookOutlines } from './history/webhook-outlines.ts';
import type { IngestLag } from './history/overview.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { PortalSettingsStore } from './keys/portal-settings.ts';
import type { PersonSessions } from './people/person-sessions.ts';
import type { Apps } from './projects/apps.ts';
import type { Projects } from './projects/projects.ts';
import type { Quotas } from './projects/quotas.ts';
import type { RemoveTree } from './projects/remove-tree.ts';
import type { Uids } from './projects/uids.ts';
import type { StartResend } from './resend/start-resend.ts';
import type { Holds } from './waiting/holds.ts';
import type { StartCancellation } from './webhooks/cancel-selected.ts';
import type { CompanyKeys, FindPublicKeys } from './webhooks/signing-keys.ts';
import type { ChangeWebhook } from './webhooks/webhooks.ts';

/** Everything that the routes of the API and their use cases work with. `start.ts` makes the only one. */
export interface Gateway {
  policy: EgressPolicy;
  /** The bytes of a webhook's custom headers. */
  maxHeaderBytes: number;
  /** SOURCE_IPS. */
  sourceIps: readonly string[];
  /** PUBLIC_URL. */
  publicUrl: string | undefined;
  /** Whether people sign in at an issuer; OIDC_ISSUER. */
  hasIssuer: boolean;
  /** The bounds of the concurrency limit of an endpoint, as the dispatchers are configured. */
  concurrency: ConcurrencyBounds;
  logger: Logger;
  nowMs: () => number;
  newId: (prefix: IdPrefix) => string;

  /** MongoDB ends reads of this database when they have taken as long as a request may. */
  db: Database;
  auditEvents: AuditStore;
  cancellations: FilterCancellations;
  checks: Pick<MessageChecks, 'positions'>;
  companies: CompanyStore;
  deliveries: DeliveryQueries;
  deliveryStore: DeliveryStore;
  erasures: RequestedErasures;
  links: LinkStore;
  invitations: InvitationStore;
  people: PeopleStore;
  messages: MessageQueries;
  portalSettings: PortalSettingsStore;
  resends: ResendStore;
  sequences: SequenceQueries & Pick<SequenceStore, 'makeDue'>;
  stats: StatsQueries;
  webhooks: WebhookStore;
  selected: SelectedDeliveries;
  readOutlines: ReadWebhookOutlines;
  readEnabled: ReadEnabledWebhooks;

  holdStates: HoldStates;
  circuits: OpenCircuits;
  flows: EndpointFlows;
  /** Announces a change to the caches of every gateway and dispatcher. */
  invalidate: Invalidate;

  quotas: Quotas;
  uids: Uids;
  projects: Projects;
  apps: Apps;
  eventTypes: EventTypes;
  importEventTypes: ImportEventTypes;
  apiKeys: ApiKeys;
  personSessions: PersonSessions;
  companyKeys: CompanyKeys;
  findPublicKeys: FindPublicKeys;
  changeWebhook: ChangeWebhook;
  remove: RemoveTree;
  acceptMany: KeyedAccept['acceptMany'];
  /** Returns false when a message of this length would be refused; then no work is done for it. */
  hasRoomToAccept: AcceptMessages['hasRoom'];
  acceptOne: AcceptOne;
  startCancellation: StartCancellation;
  startResend: StartResend;
  holds: Holds;
  ingestLag: IngestLag;
}
