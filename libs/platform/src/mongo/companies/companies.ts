import { ALL_SCOPES, type Scope, SCOPES } from '@posthorn/domain/access.ts';
import { type CompanyStatus, companyStatusOf } from '@posthorn/domain/company.ts';
import type { Role } from '@posthorn/domain/people.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { collection } from '../collections.ts';
import type { ApiKeyDocument, CompanyDocument, PersonDocument } from '../documents.ts';
import { createHoldNotes } from '../webhooks/holds.ts';

/**
 * Companies and API keys, for the operator and for authentication: the only queries of the API that
 * do not belong to one company.
 */
export interface CompanyStore {
  insertCompany: (company: CompanyDocument) => Promise<void>;
  hasCompany: (companyId: string) => Promise<boolean>;
  /** Null for an unknown company. */
  nameOf: (companyId: string) => Promise<string | null>;
  /** Oldest first. */
  listCompanies: () => Promise<CompanyDocument[]>;
  insertKey: (key: ApiKeyDocument) => Promise<void>;
  /** Oldest first, without their hashes, and without those of people's sessions. */
  listKeys: (companyId: string) => Promise<Omit<ApiKeyDocument, 'hash'>[]>;
  /** By hash. A key whose company or person is removed or whose person is disabled is missing, an expired one is there. */
  findKeys: (keyHashes: ReadonlySet<string>) => Promise<Map<string, KeyRecord>>;
  /** Returns the hashes of keys of these companies that were used since then: 5,000 at most. */
  usedSince: (companyIds: readonly string[], sinceMs: number) => Promise<string[]>;
  /**
   * Stores when keys were used, unless a time of the same minute or a later one is stored. Returns the times that are
   * stored now; none for a key that is gone.
   */
  noteUse: (usedAtMs: ReadonlyMap<string, number>) => Promise<Map<string, number>>;
  /** Null for an unknown key. */
  companyOfKey: (keyId: string) => Promise<string | null>;
  /** Returns true when it removed one. */
  removeKey: (keyId: string) => Promise<boolean>;
  /** The id of the key with this hash if a link made it; null for others. */
  linkKeyOf: (keyHash: string) => Promise<string | null>;
  /** Removes the key with this hash if a link made it, so that the key was never shown. Returns true when it did. */
  removeLinkKey: (keyHash: string) => Promise<boolean>;
}

/** The rights of a request by its API key. */
export interface KeyRecord {
  keyId: string;
  companyId: string;
  scopes: readonly Scope[];
  /** The only app that the key may be used for; null for the whole company. */
  appId: string | null;
  /** Null for ever. */
  expiresAtMs: number | null;
  /** Its company is suspended. */
  isSuspended: boolean;
  /** The person whose session the key is of; absent for every other key. */
  person?: KeyPerson;
}

export interface KeyPerson {
  id: string;
  name: string | null;
  /** The role of the session. */
  role: Role;
}

/** docs/contract.md C14.10. Every gateway notes the keys it sees, and one of them writes. */
const USE_EXACT_TO_MS = 60_000;
const MAX_USED = 5_000;
/** More keys at once would block the event loop for ten milliseconds. */
const MAX_NOTED = 2_000;

export function createCompanyStore(db: mongo.Db): CompanyStore {
  const companies = collection(db, 'companies');
  const apiKeys = collection(db, 'apiKeys');
  return {
    async insertCompany(company) {
      await companies.insertOne(company);
    },
    hasCompany: async (_id) => (await companies.findOne({ _id })) !== null,
    nameOf: async (_id) => (await companies.findOne({ _id }))?.name ?? null,
    listCompanies: () => companies.find({}).sort({ _id: 1 }).toArray(),
    async insertKey(key) {
      await apiKeys.insertOne(key);
    },
    listKeys: (companyId) =>
      apiKeys
        .find({ companyId, personId: { $exists: false } })
        .sort({ _id: 1 })
        .project<Omit<ApiKeyDocument, 'hash'>>({ hash: 0 })
        .toArray(),
    findKeys: (hashes) => findKeys(db, hashes),
    async usedSince(companyIds, sinceMs) {
      const $in = [...companyIds];
      const found = apiKeys.find({ companyId: { $in }, lastUsedAt: { $gte: new Date(sinceMs) } });
      const hashes = found.limit(MAX_USED).project<Pick<ApiKeyDocument, 'hash'>>({ hash: 1 });
      return (await hashes.toArray()).map(({ hash }) => hash);
    },
    async noteUse(usedAtMs) {
      const storedMs = new Map<string, number>();
      const used = [...usedAtMs];
      for (let from = 0; from < used.length; from += MAX_NOTED) {
        const some = await noteSome(apiKeys, used.slice(from, from + MAX_NOTED));
        for (const [id, atMs] of some) storedMs.set(id, atMs);
      }
      return storedMs;
    },
    companyOfKey: async (_id) => (await apiKeys.findOne({ _id }))?.companyId ?? null,
    removeKey: async (_id) => (await apiKeys.deleteOne({ _id })).deletedCount === 1,
    linkKeyOf: async (hash) => (await apiKeys.findOne(madeByLink(hash)))?._id ?? null,
    async removeLinkKey(hash) {
      return (await apiKeys.deleteOne(madeByLink(hash))).deletedCount === 1;
    },
  };
}

async function findKeys(
  db: mongo.Db,
  hashes: ReadonlySet<string>,
): Promise<Map<string, KeyRecord>> {
  const keys = await collection(db, 'apiKeys')
    .find({ hash: { $in: [...hashes] } })
    .toArray();
  const ids = [...new Set(keys.map(({ companyId }) => companyId))];
  const companies = collection(db, 'companies');
  const owners = ids.length === 0 ? [] : await companies.find({ _id: { $in: ids } }).toArray();
  const byId = new Map(owners.map((company) => [company._id, company]));
  const people = await peopleOf(db, keys);
  const found = new Map<string, KeyRecord>();
  for (const key of keys) {
    const company = byId.get(key.companyId);
    if (company && key.personId === undefined) found.set(key.hash, toKeyRecord(key, company));
    const person = people.get(key.personId ?? '');
    if (!company || !person || !key.signIn) continue;
    const { role } = key.signIn;
    const { _id: id, name } = person;
    found.set(key.hash, { ...toKeyRecord(key, company), person: { id, name, role } });
  }
  return found;
}

/** Reads the people whose sessions the keys are of, by id, without those who are disabled. */
async function peopleOf(
  db: mongo.Db,
  keys: readonly ApiKeyDocument[],
): Promise<Map<string, PersonDocument>> {
  const ids = new Set(keys.flatMap(({ personId }) => personId ?? []));
  if (ids.size === 0) return new Map();
  const enabled = { _id: { $in: [...ids] }, disabledAt: { $exists: false } };
  const found = await collection(db, 'people').find(enabled).toArray();
  return new Map(found.map((person) => [person._id, person]));
}

/** Reads first, in one query: with many gateways another one has written most of the keys. */
async function noteSome(
  apiKeys: mongo.Collection<ApiKeyDocument>,
  usedAtMs: readonly (readonly [string, number])[],
): Promise<Map<string, number>> {
  const found = apiKeys.find({ _id: { $in: usedAtMs.map(([id]) => id) } });
  const keys = await found
    .project<Pick<ApiKeyDocument, '_id' | 'lastUsedAt'>>({ lastUsedAt: 1 })
    .toArray();
  const storedMs = new Map(keys.map(({ _id, lastUsedAt }) => [_id, lastUsedAt?.getTime() ?? 0]));
  const updates = usedAtMs.flatMap(([_id, atMs]) => {
    const storedAtMs = storedMs.get(_id);
    if (storedAtMs === undefined || storedAtMs > atMs - USE_EXACT_TO_MS) return [];
    storedMs.set(_id, atMs);
    // Another gateway may have written it since.
    const isOlder = { $not: { $gt: new Date(atMs - USE_EXACT_TO_MS) } };
    const update = { $set: { lastUsedAt: new Date(atMs) } };
    return [{ updateOne: { filter: { _id, lastUsedAt: isOlder }, update } }];
  });
  if (updates.length > 0) await apiKeys.bulkWrite(updates, { ordered: false });
  return storedMs;
}

const madeByLink = (hash: string) => ({ hash, removeAt: { $exists: true } });

function toKeyRecord(
  { _id, companyId, scopes, appId, expiresAt }: ApiKeyDocument,
  company: CompanyDocument,
): KeyRecord {
  return {
    keyId: _id,
    companyId,
    scopes: scopes ?? ALL_SCOPES,
    appId: appId ?? null,
    expiresAtMs: expiresAt?.getTime() ?? null,
    isSuspended: companyStatusOf(company) !== 'active',
  };
}

/** Suspends, resumes and removes companies. Every change may be repeated. */
export interface CompanyLife {
  /** Null when there is no such company. */
  statusOf: (companyId: string) => Promise<CompanyStatus | null>;
  suspend: (companyId: string) => Promise<void>;
  /** A company that is being removed stays suspended. */
  resume: (companyId: string) => Promise<void>;
  /** Suspends the company for good and removes its keys. Everything else is removed later. */
  beginRemoval: (companyId: string) => Promise<void>;
  /** By id, since when they are suspended, in milliseconds since 1970. Includes those that are being removed. */
  listSuspended: () => Promise<Map<string, number>>;
  /** The companies whose removal began at least `forMs` ago, by the database's clock. */
  listRemovable: (forMs: number) => Promise<string[]>;
  /** Removes the company itself, which is the last of it. */
  endRemoval: (companyId: string) => Promise<void>;
}

/** A time is set once: whoever repeats a change does not begin again. */
const onceNow = (field: string) => ({ $ifNull: [`$${field}`, '$$NOW'] });

/** `nowMs` is the time of the database: the note of a resumed company is due by it. */
export function createCompanyLife(db: mongo.Db, nowMs: () => number): CompanyLife {
  const companies = collection(db, 'companies');
  const notes = createHoldNotes(db);
  /** The retry service releases the deliveries that wait when the suspension has ended. */
  const touch = (id: string): Promise<void> => {
    const atMs = nowMs();
    return notes.touch({ id, companyId: id, kind: 'company' }, { atMs, dueAtMs: atMs });
  };
  const marked = { suspendedAt: { $exists: true } };
  return {
    async statusOf(_id) {
      const found = await companies.findOne({ _id });
      return found && companyStatusOf(found);
    },
    async suspend(_id) {
      await touch(_id);
      await companies.updateOne({ _id }, [{ $set: { suspendedAt: onceNow('suspendedAt') } }]);
    },
    async resume(_id) {
      const filter = { _id, removalAt: { $exists: false } };
      await touch(_id);
      await companies.updateOne(filter, { $unset: { suspendedAt: '' } });
      // A look at the note may have found it suspended in between.
      await touch(_id);
    },
    async beginRemoval(_id) {
      const marks = { suspendedAt: onceNow('suspendedAt'), removalAt: onceNow('removalAt') };
      await companies.updateOne({ _id }, [{ $set: marks }]);
      await collection(db, 'apiKeys').deleteMany({ companyId: _id });
    },
    async listSuspended() {
      const found = await companies.find(marked).toArray();
      return new Map(
        found.map(({ _id, suspendedAt, createdAt }) => [_id, (suspendedAt ?? createdAt).getTime()]),
      );
    },
    async listRemovable(forMs) {
      // In the projection: as a filter, MongoDB would read the collection and not the index.
      const isQuiet = { $lte: ['$removalAt', { $subtract: ['$$NOW', forMs] }] };
      const found = companies.find({ ...marked, removalAt: { $exists: true } });
      const page = found.project<{ _id: string; isQuiet: boolean }>({ isQuiet });
      return (await page.toArray()).filter((each) => each.isQuiet).map(({ _id }) => _id);
    },
    async endRemoval(_id) {
      await companies.deleteOne({ _id, removalAt: { $exists: true } });
    },
  };
}

/** Returns which pages may frame the portal of each of these companies, of those that have said so. */
export async function readPortalOrigins(
  db: mongo.Db,
  companyIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const stored = collection(db, 'portalSettings').find({ _id: { $in: [...companyIds] } });
  return new Map((await stored.toArray()).map(({ _id, origins }) => [_id, origins]));
}

const KEY_BYTES = 32;
const SHOWN_CHARS = 12;
const CHECKSUM_CHARS = 6;
const BASE_62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** `phk_`, 32 random bytes and their checksum. */
const KEY = /^(phk_[A-Za-z0-9_-]{43})([0-9A-Za-z]{6})$/;

interface MakeKeyDeps {
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** The limits of a key. A field that is absent sets no limit. */
export type KeyRights = Pick<ApiKeyDocument, 'scopes' | 'appId' | 'expiresAt'>;

/** The limits asked for a new key. A field that is absent sets no limit. */
export interface AskedRights {
  scopes?: readonly Scope[] | undefined;
  appId?: string | undefined;
  /** Milliseconds since 1970. */
  expiresAtMs?: number | undefined;
}

/** Returns the rights as they are stored: each scope once, in the order of SCOPES. */
export function toKeyRights({ scopes, appId, expiresAtMs }: AskedRights): KeyRights {
  return {
    ...(scopes && { scopes: SCOPES.filter((each) => scopes.includes(each)) }),
    ...(appId !== undefined && { appId }),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs) }),
  };
}

/** Makes an API key, and its document, which does not hold the key itself. */
export function makeApiKey(
  { newId, nowMs }: MakeKeyDeps,
  companyId: string,
  name: string,
  rights: KeyRights = {},
): { key: string; document: ApiKeyDocument } {
  const key = apiKeyWith(randomBytes(KEY_BYTES));
  const document = {
    _id: newId('key'),
    companyId,
    name,
    prefix: key.slice(0, SHOWN_CHARS),
    hash: hashOfKey(key),
    createdAt: new Date(nowMs()),
    ...rights,
  };
  return { key, document };
}

/** Returns the API key with these 32 bytes. */
export function apiKeyWith(bytes: Buffer): string {
  const secret = `phk_${bytes.toString('base64url')}`;
  return secret + checksumOf(secret);
}

/** Keys are looked up by their hash, so no comparison takes a time that depends on the key's bytes. */
export function hashOfKey(apiKey: string): string {
  return hash('sha256', apiKey, 'hex');
}

/**
 * Returns false for a text that cannot be a key: it has another form, or its checksum does not match.
 * So a mistyped or made-up key costs no look-up.
 */
export function isWellFormedKey(text: string): boolean {
  const [, secret, checksum] = KEY.exec(text) ?? [];
  return secret !== undefined && checksum === checksumOf(secret);
}

/** The CRC-32 in base 62, as in the tokens of GitHub. */
function checksumOf(secret: string): string {
  let rest = crc32(secret);
  let text = '';
  while (text.length < CHECKSUM_CHARS) {
    text = BASE_62.charAt(rest % BASE_62.length) + text;
    rest = Math.floor(rest / BASE_62.length);
  }
  return text;
}
