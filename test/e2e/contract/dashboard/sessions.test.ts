import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SCOPES } from '@posthorn/domain/access.ts';
import {
  createApiClient,
  type ApiAnswer,
  type ApiClient,
} from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import {
  aTime,
  anId,
  dataOf,
  expectFailure,
  expectInvalid,
} from '../../../support/api/expect-answers.ts';
import { cookieOf, createSessionClient, SESSION } from '../../../support/api/session-client.ts';
import { makeSignInLink } from '../../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { eventually } from '../../../support/time/eventually.ts';

const KEYS = '/api/v1/api-keys';

let posthorn: OwnGateway;
let nobody: ApiClient;

beforeAll(async () => {
  posthorn = await joinWithGateway('contract', { REDIS_PREFIX: 'tsessions:' });
  nobody = createApiClient(posthorn.baseUrl, null);
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

interface ShownKey {
  id: string;
  key: string;
}

async function makeKey(fields: object = {}): Promise<ShownKey> {
  return dataOf<ShownKey>(await posthorn.api.post(KEYS, { name: 'Person', ...fields }), 201);
}

const signIn = (apiKey: string): Promise<ApiAnswer> => nobody.post(SESSION, { apiKey });

async function signedIn(apiKey: string): Promise<ApiClient> {
  return createSessionClient(posthorn.baseUrl, cookieOf(await signIn(apiKey)));
}

const makeLink = (): Promise<string> => makeSignInLink(posthorn);

describe('A session', () => {
  it('is begun by an API key, with a cookie that scripts and other sites cannot use', async () => {
    const { id, key } = await makeKey({ scopes: ['read', 'webhooks:write'] });
    const answer = await nobody.post(SESSION, { apiKey: key, companyId: posthorn.companyId });
    const session = {
      kind: 'company',
      company: { id: posthorn.companyId, name: 'Test' },
      key: { id, scopes: ['read', 'webhooks:write'], appId: null },
      expiresAt: aTime,
      portal: null,
    };
    expect(dataOf(answer)).toEqual(session);
    const attributes = (answer.headers.get('set-cookie') ?? '').split('; ').slice(1);
    expect(attributes).toEqual(expect.arrayContaining(['Path=/', 'HttpOnly', 'SameSite=Strict']));
    expect(attributes).not.toContain('Secure');
    expect(answer.headers.get('set-cookie')).not.toContain(key);
    const api = createSessionClient(posthorn.baseUrl, cookieOf(answer));
    expect(dataOf(await api.get(SESSION))).toEqual(session);
    const events = await readAuditEvents(posthorn.api, { actor: id });
    expect(events).toMatchObject([{ action: 'dashboard.signed_in', outcome: 'done' }]);
  });

  it('may do what its key may do, without naming the company', async () => {
    const api = await signedIn((await makeKey({ scopes: ['read'] })).key);
    dataOf(await api.get('/projects'));
    expectFailure(await api.post('/projects', { name: 'X' }), 403, 'insufficient_scope');
    const foreign = await api.get('/projects', { companyid: `${posthorn.companyId}x` });
    expectFailure(foreign, 403, 'company_mismatch');
  });

  it('counts for nothing without the header that no other site can set', async () => {
    const cookie = cookieOf(await signIn(posthorn.apiKey));
    const forged = createApiClient(posthorn.baseUrl, null, { cookie });
    expectFailure(await forged.get('/projects'), 401, 'unauthorized');
    expectFailure(await forged.post('/projects', { name: 'X' }), 401, 'unauthorized');
    const form = { 'content-type': 'text/plain' };
    const submitted = await nobody.post(SESSION, { apiKey: posthorn.apiKey }, form);
    expectFailure(submitted, 415, 'unsupported_media_type');
  });

  it('gives way to an API key in the same request', async () => {
    const cookie = cookieOf(await signIn(posthorn.apiKey));
    const both = createApiClient(posthorn.baseUrl, 'wrong', { cookie, 'x-posthorn-session': '1' });
    expectFailure(await both.get('/projects'), 401, 'unauthorized');
  });

  it('ends within seconds when its key is revoked', async () => {
    const { id, key } = await makeKey();
    const api = await signedIn(key);
    dataOf(await api.get('/webhooks'));
    dataOf(await posthorn.api.delete(`${KEYS}/${id}`));
    await eventually('the end of the session', async () => (await api.get(SESSION)).status === 401);
    expectFailure(await api.get('/webhooks'), 401, 'unauthorized');
  });

  it('ends when its key expires', async () => {
    const expiresAt = new Date(Date.now() + 2_000).toISOString();
    const api = await signedIn((await makeKey({ expiresAt })).key);
    expect(dataOf<{ expiresAt: string }>(await api.get(SESSION)).expiresAt).toBe(expiresAt);
    await eventually('its end', async () => (await api.get('/webhooks')).status === 401);
  });

  it('ends in the browser by signing out', async () => {
    const api = await signedIn(posthorn.apiKey);
    const answer = await api.delete(SESSION);
    expect(answer.status).toBe(200);
    expect(cookieOf(answer)).toBe('posthorn_session=');
    expectFailure(await nobody.get(SESSION), 401, 'unauthorized');
  });

  it('cannot be forged or changed', async () => {
    const cookie = cookieOf(await signIn(posthorn.apiKey));
    const [name = '', value = ''] = cookie.split('=');
    const [keyId = '', body = '', digest = ''] = value.split('.');
    const statement = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
    const later = Buffer.from(JSON.stringify({ ...statement, endsAtMs: 9e15 })).toString(
      'base64url',
    );
    const forged = [`${keyId}.${later}.${digest}`, `x${value}`, `${keyId}.${body}.`, 'x', ''];
    for (const text of forged) {
      const api = createSessionClient(posthorn.baseUrl, `${name}=${text}`);
      expectFailure(await api.get('/webhooks'), 401, 'unauthorized');
      expectFailure(await api.get(SESSION), 401, 'unauthorized');
    }
  });

  it.each([
    [{}, ['']],
    [{ apiKey: 'x', link: 'y' }, ['']],
    [{ apiKey: 1 }, ['apiKey']],
    [{ link: '' }, ['link']],
    [{ key: 'x' }, ['', 'key']],
  ])('is not begun by %j', async (body, paths) => {
    expectInvalid(await nobody.post(SESSION, body), ...paths);
  });
});

describe('A sign-in link', () => {
  it('opens once, with a key of its own that is listed, audited and removed by signing out', async () => {
    const link = await makeLink();
    const answer = await nobody.post(SESSION, { link });
    const session = dataOf<{ key: { id: string; scopes: string[] } }>(answer);
    expect(session.key).toEqual({ id: anId('key'), scopes: [...SCOPES], appId: null });
    expectFailure(await nobody.post(SESSION, { link }), 410, 'link_used');

    const api = createSessionClient(posthorn.baseUrl, cookieOf(answer));
    dataOf(await api.post('/projects', { name: 'By a person' }), 201);
    const keys = dataOf<{ id: string; name: string }[]>(await api.get(KEYS));
    expect(keys).toContainEqual(
      expect.objectContaining({ id: session.key.id, name: 'Sign-in by link' }),
    );
    const events = await readAuditEvents(posthorn.api, { actor: session.key.id });
    expect(events.map(({ action, outcome }) => [action, outcome])).toEqual([
      ['project.created', 'done'],
      ['dashboard.signed_in', 'done'],
    ]);
    const made = await readAuditEvents(posthorn.api, { action: 'dashboard_link.created' });
    expect(made).toMatchObject([{ actor: { kind: 'admin' } }]);

    expect((await api.delete(SESSION)).status).toBe(200);
    expectFailure(await api.get('/projects'), 401, 'unauthorized');
    const [ended] = await readAuditEvents(posthorn.api, { actor: session.key.id });
    const target = { kind: 'apiKey', id: session.key.id };
    expect(ended).toMatchObject({ action: 'api_key.revoked', target, outcome: 'done' });
  });

  it('opens once, however many try at the same time', async () => {
    const link = await makeLink();
    const tries = Array.from({ length: 8 }, () => nobody.post(SESSION, { link }));
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 410, 410, 410, 410, 410, 410, 410]);
  });

  it('is unknown when it was changed', async () => {
    const link = await makeLink();
    for (const changed of [
      `${link}x`,
      link.slice(1),
      link.replace(/^./, (c) => (c === 'A' ? 'B' : 'A')),
    ]) {
      expectFailure(await nobody.post(SESSION, { link: changed }), 404, 'link_unknown');
    }
  });

  it('is in no log, and neither is the cookie', async () => {
    const link = await makeLink();
    const cookie = cookieOf(await nobody.post(SESSION, { link }));
    dataOf(await createSessionClient(posthorn.baseUrl, cookie).get('/projects'));
    for (const secret of [link, cookie]) expect(posthorn.gateway.output()).not.toContain(secret);
  });
});

describe('Wrong keys and links at the sign-in', () => {
  it('are refused with 429 after a hundred from one address', async () => {
    const codes = new Set<string | undefined>();
    for (let n = 0; n < 120; n += 1) {
      const body = n % 2 === 0 ? { apiKey: `wrong ${n}` } : { link: `wrong ${n}` };
      codes.add((await nobody.post(SESSION, body)).body.code);
    }
    expect([...codes]).toEqual(['unauthorized', 'link_unknown', 'too_many_wrong_keys']);
    expect((await signIn(posthorn.apiKey)).status).toBe(200);
  });
});
