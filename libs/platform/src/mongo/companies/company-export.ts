import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { MINUTE_MS } from '@posthorn/domain/stats.ts';
import type { Vault } from '../../security/vault.ts';
import { collection, type DocumentOf } from '../collections.ts';
import {
  documentsIn,
  documentsOf,
  type OwnedName,
  type UndividedName,
} from '../company-documents.ts';
import { type Database, isDayKind } from '../days/days.ts';
import type { DeliveryDocument, MessageDocument } from '../documents.ts';
import { minutesOf } from '../messages/stats-documents.ts';
import { openSigningKey } from './signing-keys.ts';
import { openWebhook } from '../webhooks/webhooks.ts';

/** One thing of a company, under the names that its document has. Its `type` names what it is. */
export interface ExportedThing {
  type: string;
  id: string;
  [field: string]: unknown;
}

/** The type of the things of each collection; null for what is not exported. */
const TYPES: Record<OwnedName, string | null> = {
  projects: 'project',
  eventTypes: 'eventType',
  eventTypeVersions: 'eventTypeVersion',
  apps: 'app',
  webhooks: 'webhook',
  signingKeys: 'signingKey',
  apiKeys: 'apiKey',
  people: 'person',
  peopleSettings: 'peopleSettings',
  resends: 'resend',
  filterCancellations: 'cancellation',
  messages: 'message',
  deliveries: 'delivery',
  auditEvents: 'auditEvent',
  stats: 'stats',
  usage: 'usage',
  portalSettings: 'portalSettings',
  // Messages have their keys.
  idempotencyKeys: null,
  // The notes of a deletion, and of a hold.
  removals: null,
  holdNotes: null,
  sequences: null,
  // Nobody can sign in with what is stored of them.
  links: null,
};

/** Never exported: what proves a key, what only this installation can read, and what only it needs. */
const OMITTED = [
  'companyId',
  'hash',
  'sealed',
  'sidHash',
  'idToken',
  'keyId',
  'idempotency',
  'publisherId',
  'deferredAt',
  'dueAt',
  'progress',
  'scannedTo',
  'stopsUntil',
  'step',
  'creationId',
];

/**
 * Reads everything that the company has, one thing after the other, each as it is when it is read. Its
 * deliveries come after their messages. With a vault, webhooks and signing keys have their secrets; throws
 * SealedValueError for one that does not open. Yields nothing for an unknown company.
 */
export async function* exportCompany(
  db: Database,
  companyId: string,
  vault: Vault | null,
): AsyncGenerator<ExportedThing> {
  const company = await collection(db, 'companies').findOne({ _id: companyId });
  if (!company) return;
  yield toThing('company', company);
  for (const [name, type] of Object.entries(TYPES) as [OwnedName, string | null][]) {
    if (type === null) continue;
    if (name === 'messages') yield* readMessages(db, companyId);
    else if (!isDayKind(name)) yield* readAll(db, name, { companyId, type, vault });
  }
}

interface Wanted {
  companyId: string;
  type: string;
  vault: Vault | null;
}

async function* readAll(
  db: Database,
  name: UndividedName,
  { companyId, type, vault }: Wanted,
): AsyncGenerator<ExportedThing> {
  const found = documentsOf(db, name, companyId).find({}).sort({ _id: 1 });
  for await (const document of found) {
    const secrets = vault ? secretsOf(vault, name, document) : {};
    const shown = name === 'stats' ? unpacked(document as DocumentOf['stats']) : document;
    yield { ...toThing(type, shown), ...secrets };
  }
}

/** All minutes in one form. */
function unpacked(stored: DocumentOf['stats']): DocumentOf['stats'] {
  if (!stored.packed) return stored;
  const { packed, ...hour } = stored;
  const minutes = [...minutesOf({ ...hour, packed })].map(
    ([atMs, counts]) => [(atMs - hour.at.getTime()) / MINUTE_MS, counts] as const,
  );
  return { ...hour, minutes: Object.fromEntries(minutes) };
}

/** Everything that is sealed, so that no secret of a later version is missing. */
function secretsOf(vault: Vault, name: OwnedName, document: object): object {
  if (name === 'webhooks') {
    return withoutKnown(openWebhook(vault, document as DocumentOf['webhooks']));
  }
  if (name === 'signingKeys') {
    return withoutKnown(openSigningKey(vault, document as DocumentOf['signingKeys']));
  }
  return {};
}

/** The fields that the document has under other names. */
const KNOWN = ['id', 'companyId', 'createdAtMs', 'updatedAtMs'];

function withoutKnown(opened: object): object {
  return Object.fromEntries<unknown>(
    Object.entries(opened).filter(([name]) => !KNOWN.includes(name)),
  );
}

/** Read from the server at once: 4 MB of the largest payloads. */
const MESSAGE_BATCH = 16;
/** Deliveries by id in one query. */
const MAX_IDS = 1_000;

async function* readMessages(db: Database, companyId: string): AsyncGenerator<ExportedThing> {
  for (const documents of db.days.messages.within({})) {
    const found = documentsIn<'messages'>(documents, companyId).find({}).sort({ _id: 1 });
    for await (const message of found.batchSize(MESSAGE_BATCH)) {
      const { idempotency } = message;
      // The key that the client gave: before it stands the app of the API key that it came with.
      const key = idempotency && { idempotencyKey: idempotency.key.split('\n').at(-1) };
      yield { ...toThing('message', message), ...key };
      yield* readDeliveries(db, companyId, message);
    }
  }
}

async function* readDeliveries(
  db: Database,
  companyId: string,
  { _id: messageId, targets }: Pick<MessageDocument, '_id' | 'targets'>,
): AsyncGenerator<ExportedThing> {
  // They have the day of their message.
  const deliveries = documentsIn<'deliveries'>(db.days.deliveries.of(messageId), companyId);
  for (let from = 0; from < targets.length; from += MAX_IDS) {
    const some = targets.slice(from, from + MAX_IDS);
    const ids = some.map((webhookId) => deliveryIdOf(messageId, webhookId));
    const found: AsyncIterable<DeliveryDocument> = deliveries.find({ _id: { $in: ids } });
    for await (const delivery of found) yield toThing('delivery', delivery);
  }
}

function toThing(type: string, { _id: id, ...fields }: { _id: string }): ExportedThing {
  const shown = Object.entries(fields).filter(([name]) => !OMITTED.includes(name));
  return { type, id, ...Object.fromEntries<unknown>(shown) };
}
