import { randomUUID } from 'node:crypto';
import type { mongo } from 'mongoose';
import type { CollectionName } from './collections.ts';
import {
  BLOCKED_KEY,
  SEQUENCE_DUE_KEY,
  SEQUENCE_DUE_OF_COMPANY_KEY,
} from './messages/sequences.ts';
import { storeLayout } from './days/day-collections.ts';
import { KEY_DAYS } from './days/days.ts';
import { type AppliedResult, applyIndexes, type IndexSpec, type RetiredIndex } from './indexes.ts';
import { createLeaseStore, withLease } from './leases.ts';

/** Usage is kept for a year and the month of its last invoice. */
const USAGE_DAYS = 400;
const DAY_SECONDS = 86_400;

/** How long documents are kept, in days. */
interface Retention {
  /** The retention of messages, deliveries, resends and erasures. */
  days: number;
  auditDays: number;
  /** Whether MongoDB is a sharded cluster whose shards share each new day. */
  isSharded?: boolean;
}

/** Every index, each with the query that needs it. MongoDB makes the `_id` indexes itself. */
function indexSpecs({ days, auditDays }: Retention): IndexSpec[] {
  return [
    ...RESOURCE_INDEXES,
    ...HISTORY_INDEXES,
    ...AUDIT_INDEXES,
    expiry('resends', days),
    expiry('filterCancellations', days),
    expiry('erasures', days),
    expiry('auditEvents', auditDays),
    // The keys of creations; those of messages have a collection for each day.
    expiry('idempotencyKeys', KEY_DAYS),
    // The index also finds the busiest and the worst endpoints of the last hours.
    { ...expiry('stats', days), key: { at: 1 } },
    { ...expiry('usage', USAGE_DAYS), key: { at: 1 } },
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
  // Counts the keys of a company for its quota, without those of links and sessions.
  { collection: 'apiKeys', key: { companyId: 1, removeAt: 1 } },
  // Keys of sessions that links began go by themselves; no other key has the field.
  {
    collection: 'apiKeys',
    key: { removeAt: 1 },
    options: { expireAfterSeconds: 0, sparse: true },
  },
  // The sessions of a person, and those that the issuer ends; only the keys of sessions have the fields.
  {
    collection: 'apiKeys',
    key: { companyId: 1, personId: 1, _id: 1 },
    options: { partialFilterExpression: { personId: { $exists: true } } },
  },
  { collection: 'apiKeys', key: { sidHash: 1 }, options: { sparse: true } },
  // The keys that a person made.
  {
    collection: 'apiKeys',
    key: { companyId: 1, createdBy: 1, _id: 1 },
    options: { partialFilterExpression: { createdBy: { $exists: true } } },
  },
  // Of two first sign-ins of one person, one makes the entry. A sign-in finds all entries of the person.
  { collection: 'people', key: { companyId: 1, issuer: 1, subject: 1 }, options: { unique: true } },
  { collection: 'people', key: { issuer: 1, subject: 1 } },
  { collection: 'people', key: { companyId: 1, _id: 1 } },
  // A sign-in finds the companies that name one of its groups.
  { collection: 'peopleSettings', key: { 'groups.group': 1 } },
  { collection: 'peopleSettings', key: { companyId: 1, _id: 1 } },
  // A link is kept for a day after its end, so that its page can say why it is refused.
  { collection: 'links', key: { expiresAt: 1 }, options: { expireAfterSeconds: DAY_SECONDS } },
  // A link to the portal is revoked by its id; those to the dashboard have none.
  { collection: 'links', key: { 'portal.linkId': 1 }, options: { sparse: true } },
  { collection: 'links', key: { 'invitation.id': 1 }, options: { sparse: true } },
  // The links to portals that may be used, and the open invitations: of a company, and of an app. A revoked one is in neither.
  {
    collection: 'links',
    key: { companyId: 1, expiresAt: -1, _id: -1 },
    options: { partialFilterExpression: { isLive: true } },
  },
  {
    collection: 'links',
    key: { companyId: 1, 'portal.appId': 1, expiresAt: -1, _id: -1 },
    options: { partialFilterExpression: { isLive: true } },
  },
  // A company is removed with its links, and with what it has set for its portal.
  { collection: 'links', key: { companyId: 1, _id: 1 } },
  { collection: 'portalSettings', key: { companyId: 1, _id: 1 } },
  // Each dispatcher reads the suspended companies every two seconds; nearly no company is in the index.
  { collection: 'companies', key: { suspendedAt: 1 }, options: { sparse: true } },
  { collection: 'projects', key: { companyId: 1, _id: 1 } },
  // Their ids begin with that of the project, so the catalogue of a project is a range of the index.
  { collection: 'eventTypes', key: { companyId: 1, _id: 1 } },
  { collection: 'eventTypeVersions', key: { companyId: 1, _id: 1 } },
  { collection: 'apps', key: { projectId: 1, _id: 1 } },
  // Counts the apps of a company for its quota.
  { collection: 'apps', key: { companyId: 1, _id: 1 } },
  { collection: 'webhooks', key: { companyId: 1, _id: 1 } },
  // A message to an app goes to the app's webhooks, oldest first.
  { collection: 'webhooks', key: { appId: 1, _id: 1 } },
  // A message to a wide app reads those that select its event type only.
  { collection: 'webhooks', key: { appId: 1, eventTypes: 1, _id: 1 } },
  // A project is deleted with all its webhooks, and its global ones are counted for their quota.
  { collection: 'webhooks', key: { projectId: 1, appId: 1 } },
  // The webhooks whose pending deliveries are being cancelled; nearly no webhook is in the index.
  {
    collection: 'webhooks',
    key: { isCancelling: 1, companyId: 1 },
    options: { partialFilterExpression: { isCancelling: true } },
  },
  // A uid stands for the id, and only those that have one are in the index. A webhook without one has null.
  ...(['projects', 'apps', 'webhooks'] as const).map((collection) => ({
    collection,
    key: { companyId: 1, uid: 1 } as const,
    options: { unique: true, partialFilterExpression: { uid: { $gt: '' } } },
  })),
  // The newest keys of a company. Of two processes that make the next one, one succeeds.
  { collection: 'signingKeys', key: { companyId: 1, number: -1 }, options: { unique: true } },
  { collection: 'signingKeys', key: { expiresAt: 1 }, options: { expireAfterSeconds: 0 } },
];

const HISTORY_INDEXES: readonly IndexSpec[] = [
  // The hours of a webhook, an app or a company; and a company is removed with what was counted for it.
  { collection: 'stats', key: { companyId: 1, _id: 1 } },
  { collection: 'usage', key: { companyId: 1, _id: 1 } },
  // The hours in which webhooks of a company failed; most hours are not in the index.
  {
    collection: 'stats',
    key: { companyId: 1, at: -1 },
    options: { partialFilterExpression: { failed: { $gt: 0 } } },
  },
  // The journal is added up by buckets of companies, the earliest counts first.
  { collection: 'countJournal', key: { bucket: 1, _id: 1 } },
  // The messages whose deliveries are looked up next; those that wait for a success are not in the index.
  { collection: 'erasures', key: { dueAt: 1 }, options: { sparse: true } },
  // The messages that are erased once more next; and the newest ones, for dispatchers that start.
  { collection: 'requestedErasures', key: { dueAt: 1 } },
  // A company is removed with its resends and removals.
  { collection: 'resends', key: { companyId: 1, _id: 1 } },
  { collection: 'removals', key: { companyId: 1, _id: 1 } },
  { collection: 'holdNotes', key: { companyId: 1, _id: 1 } },
  // The keys of a webhook whose deliveries wait, the oldest first; the blocked ones are counted.
  { collection: 'sequences', key: { companyId: 1, webhookId: 1, isBlocked: 1, since: 1, _id: 1 } },
  // The sequences that have been due for the longest, and those of each company.
  { collection: 'sequences', key: SEQUENCE_DUE_KEY },
  { collection: 'sequences', key: SEQUENCE_DUE_OF_COMPANY_KEY },
  // A company is removed with its sequences.
  { collection: 'sequences', key: { companyId: 1, _id: 1 } },
  // All blocked ones, for a metric; nearly none is in the index.
  {
    collection: 'sequences',
    key: BLOCKED_KEY,
    options: { partialFilterExpression: { isBlocked: true } },
  },
  // A retry service claims the note that has been due for the longest.
  { collection: 'removals', key: { dueAt: 1, companyId: 1 } },
  { collection: 'holdNotes', key: { dueAt: 1, companyId: 1 } },
  // The hold that nobody has ended for the longest, for the alert.
  {
    collection: 'holdNotes',
    key: { isOpenEnded: 1, touchedAt: 1 },
    options: { partialFilterExpression: { isOpenEnded: true } },
  },
  // The same of resends. Parts, which have `partOf`, are apart.
  {
    collection: 'resends',
    key: { status: 1, partOf: 1, dueAt: 1, companyId: 1 },
    options: { partialFilterExpression: { status: 'running' } },
  },
  // The list of the resends of a webhook, and of an app; few are of an app.
  { collection: 'resends', key: { companyId: 1, webhookId: 1, _id: 1 } },
  {
    collection: 'resends',
    key: { companyId: 1, appId: 1, _id: 1 },
    options: { partialFilterExpression: { appId: { $exists: true } } },
  },
  // Those that wait for the end of a hold; nearly no resend is in the index.
  {
    collection: 'resends',
    key: { companyId: 1, webhookId: 1 },
    options: { partialFilterExpression: { status: 'running', 'progress.isHeld': true } },
  },
  // The same of cancellations by filter; the list of them, and of those of an app or a webhook; and those that stop attempts,
  // which dispatchers read.
  {
    collection: 'filterCancellations',
    key: { status: 1, dueAt: 1, companyId: 1 },
    options: { partialFilterExpression: { status: 'running' } },
  },
  { collection: 'filterCancellations', key: { companyId: 1, _id: 1 } },
  { collection: 'filterCancellations', key: { companyId: 1, 'filter.appId': 1, _id: 1 } },
  { collection: 'filterCancellations', key: { companyId: 1, 'filter.webhookId': 1, _id: 1 } },
  { collection: 'filterCancellations', key: { stopsUntil: 1 } },
  { collection: 'filterCancellations', key: { companyId: 1, stopsUntil: 1 } },
  // One resend of the failures of a webhook, or of all webhooks of a company, at a time.
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
  'companies', 'apiKeys', 'projects', 'eventTypes', 'eventTypeVersions', 'apps', 'webhooks', 'signingKeys',
  'idempotencyKeys', 'publishers', 'messageChecks', 'erasures', 'requestedErasures',
  'leases', 'resends', 'filterCancellations', 'removals', 'holdNotes', 'sequences', 'links', 'portalSettings', 'people', 'peopleSettings', 'auditEvents', 'stats', 'usage', 'countJournal', 'countSteps',
  'migrations', 'layout',
];

/**
 * Indexes of earlier versions, which are dropped when all others are ready. An index comes here in the release after
 * the one that stopped to use it: during a rollout the version before still runs.
 */
const RETIRED: readonly RetiredIndex[] = [];

/** The indexes on which responses depend: without them, two requests can both count as the first one. */
export const UNIQUE_INDEXES: readonly IndexSpec[] = [
  ...RESOURCE_INDEXES,
  ...HISTORY_INDEXES,
].filter(({ options }) => options?.unique === true);

/** A rollout waits this long for indexes that only speed up queries; a Job may run three times as long. */
const BUILD_WAIT_MS = 300_000;

/**
 * Makes missing collections, one at a time (see connectMongo), then the indexes, and applies the retention. A fresh
 * installation gets its first days. It may run several times at once, and be repeated after it was killed: see
 * applyIndexes.
 */
export async function createIndexes(
  db: mongo.Db,
  retention: Retention,
  { waitMs = BUILD_WAIT_MS }: { waitMs?: number } = {},
): Promise<AppliedResult> {
  const existing = await db.listCollections({}, { nameOnly: true }).toArray();
  const names = new Set(existing.map(({ name }) => name));
  for (const name of COLLECTIONS) if (!names.has(name)) await createOne(db, name);
  const lease = { name: 'create-indexes', holder: randomUUID() };
  return withLease(createLeaseStore(db), lease, async () => {
    const applied = await applyIndexes(db, indexSpecs(retention), { retired: RETIRED, waitMs });
    const { days: retentionDays, isSharded = false } = retention;
    await storeLayout(db, { retentionDays, isSharded });
    return applied;
  });
}

/** A service that was started too early may have made the collection by its first write. */
async function createOne(db: mongo.Db, name: CollectionName): Promise<void> {
  try {
    await db.createCollection(name);
  } catch (error) {
    if (!hasCodeName(error, 'NamespaceExists')) throw error;
  }
}

function hasCodeName(error: unknown, codeName: string): boolean {
  return error instanceof Error && 'codeName' in error && error.codeName === codeName;
}
