import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { ApiKeyDocument, CompanyDocument } from '../documents.ts';

/**
 * Companies and API keys, for the operator and for authentication: the only queries of the API that
 * do not belong to one company.
 */
export interface CompanyStore {
  insertCompany: (company: CompanyDocument) => Promise<void>;
  hasCompany: (companyId: string) => Promise<boolean>;
  /** Oldest first. */
  listCompanies: () => Promise<CompanyDocument[]>;
  insertKey: (key: ApiKeyDocument) => Promise<void>;
  /** Oldest first, without their hashes. */
  listKeys: (companyId: string) => Promise<Omit<ApiKeyDocument, 'hash'>[]>;
  /** Null when no key has this hash. */
  companyOfKey: (keyHash: string) => Promise<string | null>;
  /** Returns true when it removed one. */
  removeKey: (keyId: string) => Promise<boolean>;
}

export function createCompanyStore(db: mongo.Db): CompanyStore {
  const companies = collection(db, 'companies');
  const apiKeys = collection(db, 'apiKeys');
  return {
    async insertCompany(company) {
      await companies.insertOne(company);
    },
    hasCompany: async (_id) => (await companies.findOne({ _id })) !== null,
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
    async companyOfKey(hash) {
      const found = await apiKeys.findOne({ hash }, { projection: { companyId: 1 } });
      return found?.companyId ?? null;
    },
    removeKey: async (_id) => (await apiKeys.deleteOne({ _id })).deletedCount === 1,
  };
}
