import type { mongo } from 'mongoose';
import type { CollectionName } from './collections.ts';

interface IndexSpec {
  collection: CollectionName;
  key: Record<string, 1 | -1>;
  options?: mongo.CreateIndexesOptions;
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
const NOT_DELIVERED = { status: { $in: ['pending', 'exhausted', 'cancelled'] } };

/** How long documents are kept, in days. */
export interface Retention {
  /** Of messages, deliveries and resends. */
  days: number;
  auditDays: number;
}

/** Every index, each with the query that needs it. MongoDB makes the `_id` indexes itself. */
function indexSpecs({ days, auditDays }: Retention): IndexSpec[] {
  return [
    ...RESOURCE_INDEXES,
    ...HISTORY_INDEXES,
    ...AUDIT_INDEXES,
    ...(['messages', 'deliveries', 'resends'] as const).map((name) => expiry(name, days)),
    expiry('auditEvents', auditDays),
  ];
}

function expiry(name: CollectionName, days: number): IndexSpec {
  const options = { expireAfterSeconds: Math.round(days * DAY_SECONDS) };
  return { collection: name, key: { createdAt: 1 }, options };
}

const RESOURCE_INDEXES: readonly IndexSpec[] = [
  // Every request looks up its API key by hash.
  { collection: 'apiKeys', key: { hash: 1 }, options: { unique: true } },
  { collection: 'apiKeys', key: { companyId: 1, _id: 1 } },
  // Each dispatcher asks every two seconds which companies are suspended; nearly none is in the index.
  { collection: 'companies', key: { suspendedAt: 1 }, options: { sparse: true } },
  { collection: 'projects', key: { companyId: 1, _id: 1 } },
  { collection: 'apps', key: { projectId: 1, _id: 1 } },
  // Counts the apps of a company for its quota.
  { collection: 'apps', key: { companyId: 1, _id: 1 } },
  { collection: 'webhooks', key: { companyId: 1, _id: 1 } },
  // A message to an app goes to the app's webhooks, oldest first.
  { collection: 'webhooks', key: { appId: 1, _id: 1 } },
  // A project is deleted with all its webhooks, and its global ones are counted for their quota.
  { collection: 'webhooks', key: { projectId: 1, appId: 1 } },
  // The newest keys of a company. Of two processes that make the next one, one succeeds.
  { collection: 'signingKeys', key: { companyId: 1, number: -1 }, options: { unique: true } },
  { collection: 'signingKeys', key: { expiresAt: 1 }, options: { expireAfterSeconds: 0 } },
];

const HISTORY_INDEXES: readonly IndexSpec[] = [
  // Lists, newest first: messages of a company, of an app, to a webhook.
  { collection: 'messages', key: { companyId: 1, _id: 1 } },
  { collection: 'messages', key: { appId: 1, _id: 1 } },
  { collection: 'messages', key: { targets: 1, _id: 1 } },
  // One message for each idempotency key; messages without a key are not in the index.
  {
    collection: 'messages',
    key: { companyId: 1, 'idempotency.key': 1 },
    options: {
      unique: true,
      partialFilterExpression: { 'idempotency.key': { $exists: true } },
    },
  },
  // Failed and pending deliveries by webhook: resends, cancelling, health. Delivered ones, nearly all, are not in the index.
  {
    collection: 'deliveries',
    key: { companyId: 1, webhookId: 1, status: 1, _id: 1 },
    options: { partialFilterExpression: NOT_DELIVERED },
  },
  // The same by message: the list of messages that failed.
  {
    collection: 'deliveries',
    key: { companyId: 1, status: 1, messageId: 1 },
    options: { partialFilterExpression: NOT_DELIVERED },
  },
  // Overdue deliveries, for the sweep. A delivery that succeeds at once is never in the index.
  {
    collection: 'deliveries',
    key: { nextAttemptAt: 1, updatedAt: 1 },
    options: { partialFilterExpression: { status: 'pending' } },
  },
  // Each resend and removal has a lease of its own name. After a crash only this index removes it.
  { collection: 'leases', key: { expiresAt: 1 }, options: { expireAfterSeconds: HOUR_SECONDS } },
  // A company is removed with its resends and removals.
  { collection: 'resends', key: { companyId: 1, _id: 1 } },
  { collection: 'removals', key: { companyId: 1, _id: 1 } },
  {
    collection: 'resends',
    key: { status: 1, _id: 1 },
    options: { partialFilterExpression: { status: 'running' } },
  },
  // One resend of the failures of a webhook at a time.
  {
    collection: 'resends',
    key: { companyId: 1, spanOf: 1 },
    options: {
      unique: true,
      partialFilterExpression: { status: 'running', spanOf: { $exists: true } },
    },
  },
  // One resend of an app at a time.
  {
    collection: 'resends',
    key: { appId: 1 },
    options: {
      unique: true,
      partialFilterExpression: { status: 'running', appId: { $exists: true } },
    },
  },
];

/** The list of audit events, newest first, by each set of its filters: a rare action must not cost a scan of all others. */
const AUDIT_INDEXES: readonly IndexSpec[] = [
  [],
  ['action'],
  ['actor'],
  ['targetId'],
  ['actor', 'action'],
  ['targetId', 'action'],
  ['targetId', 'actor'],
  ['targetId', 'actor', 'action'],
].map((filters) => ({
  collection: 'auditEvents',
  key: Object.fromEntries(['companyId', ...filters, '_id'].map((name) => [name, 1 as const])),
}));

// prettier-ignore
const COLLECTIONS: readonly CollectionName[] = [
  'companies', 'apiKeys', 'projects', 'apps', 'webhooks', 'signingKeys',
  'messages', 'deliveries', 'publishers', 'messageChecks',
  'leases', 'resends', 'removals', 'auditEvents',
];

/**
 * Makes missing collections and indexes, and applies the retention. It makes them one at a time, and
 * runs before any service starts: see connectMongo.
 */
export async function createIndexes(db: mongo.Db, retention: Retention): Promise<void> {
  const existing = await db.listCollections({}, { nameOnly: true }).toArray();
  const names = new Set(existing.map(({ name }) => name));
  for (const name of COLLECTIONS) if (!names.has(name)) await createOne(db, name);
  for (const spec of indexSpecs(retention)) await ensureIndex(db, spec);
}

/** A service that was started too early may have made the collection by its first write. */
async function createOne(db: mongo.Db, name: CollectionName): Promise<void> {
  try {
    await db.createCollection(name);
  } catch (error) {
    if (!hasCodeName(error, 'NamespaceExists')) throw error;
  }
}

async function ensureIndex(db: mongo.Db, { collection, key, options }: IndexSpec): Promise<void> {
  try {
    await db.collection(collection).createIndex(key, options ?? {}, {});
  } catch (error) {
    // The index exists with another retention.
    if (!hasCodeName(error, 'IndexOptionsConflict')) throw error;
    const index = { keyPattern: key, expireAfterSeconds: options?.expireAfterSeconds };
    await db.command({ collMod: collection, index });
  }
}

function hasCodeName(error: unknown, codeName: string): boolean {
  return error instanceof Error && 'codeName' in error && error.codeName === codeName;
}
