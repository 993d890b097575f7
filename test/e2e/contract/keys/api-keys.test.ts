import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SCOPES } from '@posthorn/domain/access.ts';
import { createApiClient, type ApiClient } from '../../../support/api/api-client.ts';
import { createCompany } from '../../../support/process/companies.ts';
import {
  aTime,
  anId,
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

interface ShownKey {
  id: string;
  name: string;
  prefix: string;
  key?: string;
}

const KEYS = '/api/v1/api-keys';
/** What a key shows that was made with a name only. */
const UNLIMITED = { scopes: [...SCOPES], appId: null, expiresAt: null };

let posthorn: OwnCompany;

beforeAll(async () => {
  posthorn = await joinShared('contract');
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

describe('Calling the API · x-api-key [security]', () => {
  const ADDRESSES = [
    ['POST', '/projects'],
    ['GET', '/api/v1/projects'],
    ['GET', '/apps'],
    ['DELETE', '/apps/app_1'],
    ['GET', '/webhooks'],
    ['POST', '/webhook-messages'],
    ['GET', '/api/v1/api-keys'],
    ['GET', '/api/v1/deliveries/dlv_1'],
  ] as const;

  it.each(ADDRESSES)('refuses %s %s without a valid key with 401', async (method, path) => {
    const body = method === 'POST' ? {} : undefined;
    expectFailure(
      await posthorn.api.request(method, path, body, { 'x-api-key': 'wrong' }),
      ...([401, 'unauthorized'] as const),
    );
  });
});

describe('Calling the API · companyid [security]', () => {
  const REQUIRED = [
    ['GET', '/api/v1/projects'],
    ['GET', '/projects'],
    ['GET', '/apps?projectId=proj_1'],
    ['GET', '/api/v1/apps?projectId=proj_1'],
    ['GET', '/apps/app_1'],
    ['PUT', '/apps/app_1'],
    ['DELETE', '/apps/app_1'],
  ] as const;
  const NOT_REQUIRED = [
    ['POST', '/projects'],
    ['GET', '/api/v1/projects/proj_1'],
    ['POST', '/apps'],
    ['GET', '/webhooks'],
    ['GET', '/webhooks/wh_1'],
    ['POST', '/webhook-messages'],
    ['GET', '/api/v1/webhook-messages'],
  ] as const;
  const send = (method: string, path: string, headers?: Record<string, string>) => {
    const body = method === 'POST' || method === 'PUT' ? {} : undefined;
    return posthorn.api.request(method, path, body, headers);
  };

  it.each(REQUIRED)(
    'is required for %s %s, which is refused with 400 without it',
    async (method, path) => {
      expectInvalid(await send(method, path), 'companyid');
    },
  );

  it.each([...REQUIRED, ...NOT_REQUIRED])(
    'of another company is refused with 403: %s %s',
    async (method, path) => {
      const other = await createOther();
      for (const companyid of [other, 'comp_unknown', posthorn.companyId.toUpperCase()]) {
        const answer = await send(method, path, { companyid });
        expectFailure(answer, 403, 'company_mismatch');
      }
    },
  );

  let otherId: string | undefined;
  const createOther = async (): Promise<string> =>
    (otherId ??= (await createCompany(posthorn, 'Other')).companyId);
});

describe('API keys · POST /api/v1/api-keys', () => {
  it('returns id, name, prefix, key and createdAt, and the key works at once', async () => {
    const made = dataOf<ShownKey>(await posthorn.api.post(KEYS, { name: 'Deploy' }), 201);
    const { key = '' } = made;
    expect(made).toEqual({
      id: anId('key'),
      name: 'Deploy',
      prefix: key.slice(0, made.prefix.length),
      ...UNLIMITED,
      lastUsedAt: null,
      ofLink: false,
      key,
      createdAt: aTime,
    });
    expect(made.prefix.length).toBeGreaterThanOrEqual(4);
    // 32 random bytes are 43 characters of base64; the rest of the key must stay unknown.
    expect(key.length - made.prefix.length).toBeGreaterThan(30);
    dataOf(await createApiClient(posthorn.baseUrl, key).get('/webhooks'));
  });

  it.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'x', key: 'my own' }, 'key'],
    [{ name: 'x', companyId: 'comp_1' }, 'companyId'],
  ])('refuses %j because of %s', async (body, problem) => {
    expectInvalid(await posthorn.api.post(KEYS, body), problem);
  });
});

describe('API keys · GET /api/v1/api-keys', () => {
  it('lists the keys of the company, oldest first, and never a key itself', async () => {
    const { api, apiKey } = await createCompany(posthorn, 'Lists');
    const first = dataOf<ShownKey>(await api.post(KEYS, { name: 'A' }), 201);
    const second = dataOf<ShownKey>(await api.post(KEYS, { name: 'B' }), 201);
    const answer = await api.get(KEYS);
    const listed = dataOf<ShownKey[]>(answer);
    expect(listed.slice(1)).toEqual(
      [first, second].map(({ id, name, prefix }) => ({
        id,
        name,
        prefix,
        ...UNLIMITED,
        lastUsedAt: null,
        ofLink: false,
        createdAt: aTime,
      })),
    );
    expect(apiKey.startsWith(String(listed[0]?.prefix))).toBe(true);
    const text = JSON.stringify(answer.body);
    for (const key of [apiKey, first.key, second.key]) expect(text).not.toContain(key);
  });
});

describe('API keys · DELETE /api/v1/api-keys/{keyId}', () => {
  it('returns the envelope only, and the key stops working at once', async () => {
    const { id, key } = dataOf<ShownKey>(await posthorn.api.post(KEYS, { name: 'Gone' }), 201);
    const revoked = createApiClient(posthorn.baseUrl, String(key));
    dataOf(await revoked.get('/webhooks'));
    expectDeleted(await posthorn.api.delete(`${KEYS}/${id}`));
    expect((await revoked.get('/webhooks')).status).toBe(401);
    expectNotFound(await posthorn.api.delete(`${KEYS}/${id}`));
  });

  it('returns 404 for the key of another company, which still works', async () => {
    const other: ApiClient = (await createCompany(posthorn, 'Other')).api;
    const { id, key } = dataOf<ShownKey>(await other.post(KEYS, { name: 'Theirs' }), 201);
    expectNotFound(await posthorn.api.delete(`${KEYS}/${id}`));
    dataOf(await createApiClient(posthorn.baseUrl, String(key)).get('/webhooks'));
  });
});
