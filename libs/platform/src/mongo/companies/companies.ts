import type { mongo } from 'mongoose';
import { companyStatusOf } from '@posthorn/domain/company.ts';
import { ALL_SCOPES, type Scope } from '@posthorn/domain/access.ts';
import { collection } from '../documents/collections.ts';
import type { ApiKeyDocument, CompanyDocument } from '../documents/documents.ts';

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
  /** Oldest first, without their hashes. */
  listKeys: (companyId: string) => Promise<Omit<ApiKeyDocument, 'hash'>[]>;
  /** Null when no key has this hash, and when its company is removed. An expired key is found. */
  findKey: (keyHash: string) => Promise<KeyRecord | null>;
  /** Stores when keys were used, unless a time of the same minute or a later one is stored. */
  noteUse: (usedAtMs: ReadonlyMap<string, number>) => Promise<void>;
  /** Null for an unknown key. */
  companyOfKey: (keyId: string) => Promise<string | null>;
  /** Returns true when it removed one. */
  removeKey: (keyId: string) => Promise<boolean>;
  /** The id of the key with this hash if a link made it; null for others. */
  linkKeyOf: (keyHash: string) => Promise<string | null>;
  /** Removes the key with this hash if a link made it, so that nobody knows it. Returns true when it did. */
  removeLinkKey: (keyHash: string) => Promise<boolean>;
}

/** What a request may do by its API key. */
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
}

/** docs/contract.md C14.10. Every gateway notes the keys it sees, and one of them writes. */
const USE_EXACT_TO_MS = 60_000;

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
        .find({ companyId })
        .sort({ _id: 1 })
        .project<Omit<ApiKeyDocument, 'hash'>>({ hash: 0 })
        .toArray(),
    async findKey(hash) {
      const found = await apiKeys.findOne({ hash });
      const company = found && (await companies.findOne({ _id: found.companyId }));
      return company && toKeyRecord(found, company);
    },
    async noteUse(usedAtMs) {
      const updates = [...usedAtMs].map(([_id, atMs]) => {
        const isOlder = { $not: { $gt: new Date(atMs - USE_EXACT_TO_MS) } };
        return {
          updateOne: {
            filter: { _id, lastUsedAt: isOlder },
            update: { $set: { lastUsedAt: new Date(atMs) } },
          },
        };
      });
      if (updates.length > 0) await apiKeys.bulkWrite(updates, { ordered: false });
    },
    companyOfKey: async (_id) => (await apiKeys.findOne({ _id }))?.companyId ?? null,
    removeKey: async (_id) => (await apiKeys.deleteOne({ _id })).deletedCount === 1,
    linkKeyOf: async (hash) => (await apiKeys.findOne(madeByLink(hash)))?._id ?? null,
    async removeLinkKey(hash) {
      return (await apiKeys.deleteOne(madeByLink(hash))).deletedCount === 1;
    },
  };
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
