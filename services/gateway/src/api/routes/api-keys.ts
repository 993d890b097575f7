import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { apiKey, createdApiKey, describeApiKey } from '../../http/answers/api-key.ts';
import { notFound } from '../../http/api-error.ts';
import { route, type Route } from '../../http/route.ts';
import { makeApiKey } from '@posthorn/platform/mongo/accounts/make-api-key.ts';
import { limit, name, skip } from './fields.ts';

export interface ApiKeyDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** Tells every process, this one first, that the key with this hash is not valid any more. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
}

const tag = 'API keys';
const path = '/api-keys';
const versionedOnly = true;

const createBody = z.object({ name }).meta({ id: 'CreateApiKey' });
const listQuery = z.object({ limit: limit(1_000, 1_000), skip });

export function apiKeyRoutes({ db, newId, nowMs, invalidate }: ApiKeyDeps): Route[] {
  return [
    route({
      method: 'post',
      path,
      versionedOnly,
      tag,
      summary: 'Make an API key',
      description: 'The key is in this answer and nowhere else: only its hash is stored.',
      body: createBody,
      answer: { status: 201, message: 'API key created', data: createdApiKey },
      async handle({ caller: { companyId }, body: { value } }) {
        const { key, document } = makeApiKey({ newId, nowMs }, companyId, value.name);
        await documentsOf(db, 'apiKeys', companyId).insert(document);
        return { data: { ...describeApiKey(document), key } };
      },
    }),
    route({
      method: 'get',
      path,
      versionedOnly,
      tag,
      summary: 'List the API keys, oldest first',
      query: listQuery,
      answer: { status: 200, message: 'API keys found', data: z.array(apiKey) },
      async handle({ caller: { companyId }, query }) {
        const found = documentsOf(db, 'apiKeys', companyId).find({}).sort({ _id: 1 });
        const page = await found.skip(query.skip).limit(query.limit).toArray();
        return { data: page.map(describeApiKey) };
      },
    }),
    route({
      method: 'delete',
      path: `${path}/:keyId`,
      versionedOnly,
      tag,
      summary: 'Revoke an API key',
      description: 'Takes effect at once, at other gateways at the latest after two seconds.',
      answer: { status: 200, message: 'API key revoked' },
      errors: ['not_found'],
      async handle({ caller: { companyId }, params: { keyId: _id = '' } }) {
        const keys = documentsOf(db, 'apiKeys', companyId);
        const key = await keys.findOne({ _id });
        if (!key || (await keys.deleteMany({ _id })) === 0) throw notFound('API key');
        await invalidate({ companyId, id: key.hash });
        return {};
      },
    }),
  ];
}
