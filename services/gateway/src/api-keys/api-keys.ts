import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { makeApiKey } from '@posthorn/platform/mongo/companies/make-api-key.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { notFound } from '../http/api-error.ts';
import type { Quotas } from '../limits/quotas.ts';
import type { ListPage } from '../projects/projects.ts';

export interface ApiKeysDeps {
  db: mongo.Db;
  quotas: Quotas;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** Drops the key with this hash from the caches of every gateway, of this one first. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
}

export interface CreatedApiKey {
  /** Only its hash is stored. */
  key: string;
  document: ApiKeyDocument;
}

/** The API keys of a company. */
export interface ApiKeys {
  /** Throws ApiError 409 when the company has as many as it may. */
  create: (companyId: string, name: string) => Promise<CreatedApiKey>;
  /** Oldest first. */
  list: (companyId: string, page: ListPage) => Promise<ApiKeyDocument[]>;
  /** Throws ApiError 404 for an unknown key. */
  revoke: (companyId: string, keyId: string) => Promise<void>;
}

export function createApiKeys({ db, quotas, newId, nowMs, invalidate }: ApiKeysDeps): ApiKeys {
  const keysOf = (companyId: string) => documentsOf(db, 'apiKeys', companyId);
  return {
    async create(companyId, name) {
      const created = makeApiKey({ newId, nowMs }, companyId, name);
      const keys = keysOf(companyId);
      return quotas.createWithin({
        setting: 'QUOTA_KEYS_PER_COMPANY',
        ownerId: companyId,
        count: (upTo) => keys.count({}, { limit: upTo }),
        async create() {
          await keys.insert(created.document);
          return created;
        },
      });
    },
    async list(companyId, { skip, limit }) {
      return keysOf(companyId).find({}).sort({ _id: 1 }).skip(skip).limit(limit).toArray();
    },
    async revoke(companyId, _id) {
      const keys = keysOf(companyId);
      const key = await keys.findOne({ _id });
      if (!key || (await keys.deleteMany({ _id })) === 0) throw notFound('API key');
      await invalidate({ companyId, id: key.hash });
    },
  };
}
