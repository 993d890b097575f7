import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allows, type Scope, SCOPES } from '@posthorn/domain/access.ts';
import { apiKeyWith } from '@posthorn/platform/mongo/companies/companies.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { pathsOf } from '../../../services/gateway/src/http/route.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createResources, type ShownWebhook } from '../../support/api/resources.ts';
import { routeTable } from '../../support/api/route-table.ts';
import { createCompany } from '../../support/process/companies.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('API keys', () => {
  interface ShownKey {
    id: string;
    name: string;
    prefix: string;
    key?: string;
  }

  const KEYS = '/api/v1/api-keys';
  /** What a key shows that was made with a name only. */
  const UNLIMITED = { scopes: [...SCOPES], appId: null, expiresAt: null };

  const { posthorn } = useCompany('contract');

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

  describe('Calling the API · Authorization [security]', () => {
    const send = (headers: Record<string, string>, path = '/webhooks') =>
      createApiClient(posthorn.baseUrl, null).get(path, headers);

    it.each(['Bearer', 'bearer', 'BEARER '])('%s and the key is as x-api-key', async (scheme) => {
      dataOf(await send({ authorization: `${scheme} ${posthorn.apiKey}` }));
    });

    it('may be given with x-api-key when both have the same key', async () => {
      const [key, authorization] = [posthorn.apiKey, `Bearer ${posthorn.apiKey}`];
      dataOf(await send({ authorization, 'x-api-key': key }));
      for (const other of [{ 'x-api-key': 'other' }, { authorization: 'Bearer other' }]) {
        const answer = await send({ authorization, 'x-api-key': key, ...other });
        expectFailure(answer, 401, 'unauthorized');
      }
    });

    it('of another scheme is ignored beside x-api-key, and 401 alone', async () => {
      const authorization = 'Basic YTpi';
      dataOf(await send({ authorization, 'x-api-key': posthorn.apiKey }));
      const answer = await send({ authorization });
      expectFailure(answer, 401, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toMatch(/^ApiKey .+, Bearer realm=/);
    });

    it('needs no companyid, and one of another company is 403', async () => {
      const authorization = `Bearer ${posthorn.apiKey}`;
      dataOf(await send({ authorization }, '/projects'));
      dataOf(await send({ authorization, companyid: posthorn.companyId }, '/projects'));
      const answer = await send({ authorization, companyid: 'comp_unknown' }, '/webhooks');
      expectFailure(answer, 403, 'company_mismatch');
      expectInvalid(await send({ 'x-api-key': posthorn.apiKey }, '/projects'), 'companyid');
    });
  });

  it('a key with an end makes no key that outlives it, and rotates none [security]', async () => {
    const expiresAt = '2100-01-01T00:00:00.000Z';
    const create = (api: ApiClient, fields: object = {}) =>
      api.post(KEYS, { name: 'Made', ...fields });
    const endless = dataOf<ShownKey>(await create(posthorn.api), 201);
    const { key = '' } = dataOf<ShownKey>(await create(posthorn.api, { expiresAt }), 201);
    const api = createApiClient(posthorn.baseUrl, key);
    expect(dataOf(await create(api), 201)).toMatchObject({ expiresAt });
    const later = { expiresAt: '2100-01-01T00:00:00.001Z' };
    expectFailure(await create(api, later), 403, 'insufficient_scope');
    expectFailure(await api.post(`${KEYS}/${endless.id}/rotate`, {}), 403, 'insufficient_scope');
    const { keyId } = dataOf<{ keyId: string }>(await api.get('/api/v1/me'));
    expect(dataOf(await api.post(`${KEYS}/${keyId}/rotate`, {}), 201)).toMatchObject({ expiresAt });
  });

  describe('API keys · GET /api/v1/me', () => {
    it('describes the key of the request, whatever its scopes and app', async () => {
      const { appId } = await posthorn.api.createTarget('https://example.com/hook');
      const expiresAt = '2100-01-01T00:00:00.000Z';
      const limited = await makeLimited({ scopes: ['messages:write'], appId, expiresAt });
      const { body } = await createApiClient(posthorn.baseUrl, limited.key ?? '').get('/api/v1/me');
      expect(body.data).toEqual({
        companyId: posthorn.companyId,
        companyName: expect.any(String),
        keyId: limited.id,
        person: null,
        keyName: 'Limited',
        scopes: ['messages:write'],
        appId,
        expiresAt,
        serverVersion: VERSION,
      });
      const own = dataOf<object>(await posthorn.api.get('/api/v1/me'));
      expect(own).toMatchObject({ scopes: [...SCOPES], appId: null, expiresAt: null });
      expectFailure(
        await createApiClient(posthorn.baseUrl, null).get('/api/v1/me'),
        ...([401, 'unauthorized'] as const),
      );
    });

    const makeLimited = async (fields: object): Promise<ShownKey> =>
      dataOf(await posthorn.api.post(KEYS, { name: 'Limited', ...fields }), 201);
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
        createdBy: null,
        key,
        createdAt: aTime,
      });
      expect(made.prefix.length).toBeGreaterThanOrEqual(4);
      // 32 random bytes are 43 characters of base64; the rest of the key must stay unknown.
      expect(key.length - made.prefix.length).toBeGreaterThan(30);
      dataOf(await createApiClient(posthorn.baseUrl, key).get('/webhooks'));
    });

    it('refuses a key and a company of the client', async () => {
      const answer = await posthorn.api.post(KEYS, { key: 'my own', companyId: 'comp_1' });
      expectInvalid(answer, 'companyId', 'key', 'name');
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
          createdBy: null,
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
});

describe('The scopes of API keys', () => {
  interface ShownKey {
    id: string;
    name: string;
    key: string;
    scopes: Scope[];
    appId: string | null;
    expiresAt: string | null;
    lastUsedAt: string | null;
  }

  const KEYS = '/api/v1/api-keys';

  const { posthorn } = useCompany('contract');

  async function makeKey(fields: object, api = posthorn.api): Promise<ShownKey> {
    return dataOf<ShownKey>(await api.post(KEYS, { name: 'Limited', ...fields }), 201);
  }

  const clientWith = ({ key }: { key: string }): ApiClient =>
    createApiClient(posthorn.baseUrl, key, { companyid: posthorn.companyId });

  describe('The scopes of an API key [security]', () => {
    it.each(SCOPES)(
      'let a key with %s alone use the routes of this scope and no other',
      async (scope) => {
        const api = clientWith(await makeKey({ scopes: [scope] }));
        for (const route of routeTable()) {
          const isAllowed = route.scope === undefined || allows([scope], route.scope);
          for (const pattern of pathsOf(route)) {
            const path = pattern.replaceAll(/:\w+/g, 'unknown');
            const body = route.body ? {} : undefined;
            const answer = await api.request(route.method.toUpperCase(), path, body);
            const name = `${route.method} ${path}`;
            expect([name, answer.body.code === 'insufficient_scope']).toEqual([name, !isAllowed]);
            expect([name, answer.status === 403]).toEqual([name, !isAllowed]);
          }
        }
      },
    );

    it('are all by default, and are shown', async () => {
      expect(await makeKey({})).toMatchObject({
        scopes: [...SCOPES],
        appId: null,
        expiresAt: null,
      });
      expect(await makeKey({ scopes: ['read', 'messages:write'] })).toMatchObject({
        scopes: ['messages:write', 'read'],
      });
    });

    it('cannot be granted by a key without them', async () => {
      const api = clientWith(await makeKey({ scopes: ['keys:write', 'read'] }));
      await makeKey({ scopes: ['read'] }, api);
      for (const scopes of [undefined, ['read', 'webhooks:write'], ['admin']]) {
        const answer = await api.post(KEYS, { name: 'More', scopes });
        expectFailure(answer, 403, 'insufficient_scope');
      }
      const mighty = await makeKey({});
      expectFailure(await api.post(`${KEYS}/${mighty.id}/rotate`, {}), 403, 'insufficient_scope');
    });

    it('mask the secrets of webhooks for a key that only reads', async () => {
      const make = createResources(posthorn.api);
      const customHeaders = [
        { key: 'X-Auth-Token', value: 'hush' },
        { key: 'X-Tenant', value: 'north' },
      ];
      const url = 'http://127.0.0.1:1/';
      const created = await make.webhook({ url, hmacSecret: 'hush-hmac', customHeaders });
      const api = clientWith(await makeKey({ scopes: ['read'] }));
      const got = await api.get(`/webhooks/${created.id}`);
      const listed = await api.get('/webhooks');
      const asked = [
        await posthorn.api.get(`/webhooks/${created.id}?secrets=false`),
        await posthorn.api.get('/webhooks?secrets=false'),
      ];
      for (const { body } of [got, listed, ...asked])
        expect(JSON.stringify(body)).not.toMatch(/hush|whsec_/);
      expect(dataOf<ShownWebhook>(got)).toMatchObject({
        secret: '********',
        customHeaders: [{ value: '********' }, { value: 'north' }],
        authMethod: { method: 'hmac', hmacSecret: '********' },
      });
      const editor = clientWith(await makeKey({ scopes: ['read', 'webhooks:write'] }));
      expect(dataOf(await editor.get(`/webhooks/${created.id}`))).toEqual(created);
    });
  });

  describe('The end of an API key [security]', () => {
    it('comes at its expiry time', async () => {
      const expiresAt = new Date(Date.now() + 8_000).toISOString();
      const key = await makeKey({ expiresAt });
      expect(key.expiresAt).toBe(expiresAt);
      const api = clientWith(key);
      dataOf(await api.get('/projects'));
      await eventually(
        'the end of the key',
        async () => (await api.get('/projects')).status === 401,
      );
      expect(Date.now()).toBeGreaterThan(Date.parse(expiresAt) - CLOCK_MS);
    });

    it('comes after the grace when it is rotated, and the new key has the same rights', async () => {
      const old = await makeKey({ name: 'Turning', scopes: ['read'] });
      const rotated = await posthorn.api.post(`${KEYS}/${old.id}/rotate`, { graceSeconds: 600 });
      const fresh = dataOf<ShownKey>(rotated, 201);
      expect(fresh).toMatchObject({ name: 'Turning', scopes: ['read'], expiresAt: null });
      expect([fresh.id === old.id, fresh.key === old.key]).toEqual([false, false]);
      for (const key of [old, fresh]) dataOf(await clientWith(key).get('/projects'));
      const now = await posthorn.api.post(`${KEYS}/${old.id}/rotate`, { graceSeconds: 0 });
      dataOf(now, 201);
      await eventually('the end of the old key', async () => {
        return (await clientWith(old).get('/projects')).status === 401;
      });
      dataOf(await clientWith(fresh).get('/projects'));
    });
  });

  describe('The last use of an API key', () => {
    it('is shown to the minute, and not before the first use', async () => {
      const key = await makeKey({});
      const shown = async () => {
        const keys = dataOf<ShownKey[]>(await posthorn.api.get(KEYS));
        return keys.find(({ id }) => id === key.id)?.lastUsedAt;
      };
      expect(await shown()).toBeNull();
      const usedAtMs = Date.now();
      dataOf(await clientWith(key).get('/projects'));
      const lastUsedAt = await eventually('the last use', shown);
      expect(Math.abs(Date.parse(lastUsedAt) - usedAtMs)).toBeLessThan(60_000);
    });
  });
});

/** As long as a real key, so that only its bytes are wrong. */
const UNKNOWN_KEY = apiKeyWith(Buffer.alloc(32, 'x'));
const PER_MINUTE = 100;

describe('Wrong API keys [security]', () => {
  let posthorn: OwnGateway;

  beforeAll(async () => {
    posthorn = await joinWithGateway('contract', { REDIS_PREFIX: 'twrong-keys:' });
  }, 120_000);

  afterAll(() => posthorn.stop());

  function call(headers: Record<string, string>, query = ''): Promise<ApiAnswer> {
    return posthorn.api.request('GET', `/webhooks${query}`, undefined, headers);
  }

  async function makeRevokedKey(): Promise<string> {
    const admin = async (...args: string[]) => {
      const printed = await runProgram('services/admin/src/main.ts', args, posthorn.env);
      return JSON.parse(printed) as { keyId: string; apiKey: string };
    };
    const { keyId, apiKey } = await admin('key', 'create', posthorn.companyId, '--json');
    await admin('key', 'revoke', keyId, '--json');
    return apiKey;
  }

  it('get the same 401, whether missing, malformed, unknown, revoked or in the query', async () => {
    const answers = await Promise.all([
      call({ 'x-api-key': '' }),
      call({ 'x-api-key': 'x' }),
      call({ 'x-api-key': UNKNOWN_KEY }),
      call({ 'x-api-key': `${posthorn.apiKey}x` }),
      call({ 'x-api-key': await makeRevokedKey() }),
      call({ 'x-api-key': '' }, `?x-api-key=${posthorn.apiKey}`),
      call({ 'x-api-key': '', authorization: `Bearer ${posthorn.apiKey}` }),
    ]);
    for (const { status, body } of answers) {
      expect(status).toBe(401);
      expect(body).toEqual({
        success: false,
        message: expect.stringContaining('Send a valid API key'),
        code: 'unauthorized',
        requestId: expect.any(String),
      });
    }
  });

  it('are refused with 429 after a hundred, while a valid key from the same address works', async () => {
    const everyone = createApiClient(posthorn.baseUrl, null);
    const statuses: number[] = [];
    let last: ApiAnswer | undefined;
    while (statuses.length < 2 * PER_MINUTE && last?.status !== 429) {
      const wrong = `${UNKNOWN_KEY}${statuses.length}`;
      last = await (statuses.length % 2 === 0
        ? call({ 'x-api-key': wrong })
        : everyone.get('/webhooks', { authorization: `Bearer ${wrong}` }));
      statuses.push(last.status);
    }
    expect(last?.status).toBe(429);
    expect(last?.body.code).toBe('too_many_wrong_keys');
    expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(statuses.slice(0, -1).every((status) => status === 401)).toBe(true);
    expect((await call({ 'x-api-key': '' })).status).toBe(429);

    const bearer = { authorization: `Bearer ${posthorn.apiKey}` };
    expect((await everyone.get('/webhooks', bearer)).status).toBe(200);
    const valid = await call({});
    expect(valid.status).toBe(200);
    expect(valid.headers.get('ratelimit')).toMatch(/^"(company|address)";r=299\d{3};t=\d+$/);
  });

  it('are counted, and neither wrong nor valid keys are logged', async () => {
    const metrics = await (await fetch(`${posthorn.gateway.opsUrl}/metrics`)).text();
    const decisions = 'posthorn_rate_limit_decisions_total';
    expect(metrics).toMatch(
      new RegExp(`${decisions}\\{scope="wrong_keys",outcome="allowed"\\} \\d{3}`),
    );
    expect(metrics).toMatch(
      new RegExp(`${decisions}\\{scope="wrong_keys",outcome="refused"\\} [1-9]`),
    );
    const output = posthorn.gateway.output();
    for (const key of [posthorn.apiKey, UNKNOWN_KEY]) expect(output).not.toContain(key);
  });
});
