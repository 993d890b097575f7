import type { mongo } from 'mongoose';
import type * as Documents from './documents.ts';
import type { LinkDocument, PortalSettingsDocument } from './documents.ts';

export interface DocumentOf {
  companies: Documents.CompanyDocument;
  apiKeys: Documents.ApiKeyDocument;
  projects: Documents.ProjectDocument;
  eventTypes: Documents.EventTypeDocument;
  eventTypeVersions: Documents.EventTypeVersionDocument;
  apps: Documents.AppDocument;
  webhooks: Documents.WebhookDocument;
  signingKeys: Documents.SigningKeyDocument;
  messages: Documents.MessageDocument;
  idempotencyKeys: Documents.IdempotencyKeyDocument;
  deliveries: Documents.DeliveryDocument;
  publishers: Documents.PublisherDocument;
  messageChecks: Documents.MessageCheckDocument;
  erasures: Documents.ErasureDocument;
  requestedErasures: Documents.RequestedErasureDocument;
  leases: Documents.LeaseDocument;
  resends: Documents.ResendDocument;
  filterCancellations: Documents.FilterCancellationDocument;
  removals: Documents.RemovalDocument;
  holdNotes: Documents.HoldNoteDocument;
  sequences: Documents.SequenceDocument;
  links: LinkDocument;
  people: Documents.PersonDocument;
  peopleSettings: Documents.PeopleSettingsDocument;
  portalSettings: PortalSettingsDocument;
  auditEvents: Documents.AuditEventDocument;
  stats: Documents.StatsDocument;
  usage: Documents.UsageDocument;
  countJournal: Documents.CountJournalDocument;
  countSteps: Documents.CountStepDocument;
  migrations: Documents.MigrationDocument;
  layout: Documents.LayoutDocument;
}

export type CollectionName = keyof DocumentOf;

/** The typed collection; its name in the database is its name here. */
export function collection<Name extends CollectionName>(
  db: mongo.Db,
  name: Name,
): mongo.Collection<DocumentOf[Name]> {
  return db.collection<DocumentOf[Name]>(name);
}
