import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allows, SCOPES, type Scope } from '@posthorn/domain/access.ts';
import { pathsOf } from '../../../../services/gateway/src/http/route.ts';
import { createApiClient, type ApiClient } from '../../../support/api/api-client.ts';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import { createResources, type ShownWebhook } from '../../../support/api/resources.ts';
import { routeTable } from '../../../support/api/route-table.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { eventually } from '../../../support/time/eventually.ts';

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

let posthorn: OwnCompany;

beforeAll(async () => {
  posthorn = await joinShared('contract');
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

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
        const isAllowed = allows([scope], route.scope);
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

  it('are all when none are given, and are shown', async () => {
    expect(await makeKey({})).toMatchObject({ scopes: [...SCOPES], appId: null, expiresAt: null });
    expect(await makeKey({ scopes: ['read', 'messages:write'] })).toMatchObject({
      scopes: ['messages:write', 'read'],
    });
  });

  it('cannot be given by a key that does not have them', async () => {
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
  it('comes at the time that was given', async () => {
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const key = await makeKey({ expiresAt });
    expect(key.expiresAt).toBe(expiresAt);
    const api = clientWith(key);
    dataOf(await api.get('/projects'));
    await eventually('the end of the key', async () => (await api.get('/projects')).status === 401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
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
