import { z } from 'zod';
import type { ApiKeys } from '../../api-keys/api-keys.ts';
import { apiKeySchema, createdApiKeySchema, describeApiKey } from '../../http/responses/api-key.ts';
import { route, type Route } from '../../http/request/route.ts';
import { limit, name, skip } from './fields.ts';

export interface ApiKeyDeps {
  apiKeys: ApiKeys;
}

const tag = 'API keys';
const path = '/api-keys';
const versionedOnly = true;

const createBody = z.object({ name }).meta({ id: 'CreateApiKey' });
const listQuery = z.object({ limit: limit(1_000, 1_000), skip });

/** See docs/contract.md C14. */
export function apiKeyRoutes(deps: ApiKeyDeps): Route[] {
  return [
    route({
      method: 'post',
      path,
      versionedOnly,
      tag,
      summary: 'Create an API key',
      description: 'The response is the only place that shows the key: Posthorn stores its hash.',
      body: createBody,
      response: { status: 201, message: 'API key created', data: createdApiKeySchema },
      errors: ['quota_exceeded'],
      async handle({ caller: { companyId }, body: { value } }) {
        const { key, document } = await deps.apiKeys.create(companyId, value.name);
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
      response: { status: 200, message: 'API keys found', data: z.array(apiKeySchema) },
      async handle({ caller: { companyId }, query }) {
        const page = await deps.apiKeys.list(companyId, query);
        return { data: page.map(describeApiKey) };
      },
    }),
    route({
      method: 'delete',
      path: `${path}/:keyId`,
      versionedOnly,
      tag,
      summary: 'Revoke an API key',
      description:
        'The key stops working at once at this gateway, and within two seconds at others.',
      response: { status: 200, message: 'API key revoked' },
      errors: ['not_found'],
      async handle({ caller: { companyId }, params: { keyId = '' } }) {
        await deps.apiKeys.revoke(companyId, keyId);
        return {};
      },
    }),
  ];
}
