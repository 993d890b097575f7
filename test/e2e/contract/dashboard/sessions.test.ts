import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SCOPES } from '@posthorn/domain/access.ts';
import {
  type ApiAnswer,
  type ApiClient,
  createApiClient,
} from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import { createResources } from '../../../support/api/resources.ts';
import {
  cookieOf,
  createSessionClient,
  type MadeLink,
  makePortalLink,
  openLink,
  PORTAL_SESSION,
  SESSION,
} from '../../../support/api/session-client.ts';
import { makeSignInLink } from '../../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import { openConnection } from '../../../support/receivers/raw-connection.ts';
import { eventually } from '../../../support/time/eventually.ts';

describe('Sessions of the dashboard', () => {
  const KEYS = '/api/v1/api-keys';

  let posthorn: OwnGateway;
  let nobody: ApiClient;

  beforeAll(async () => {
    posthorn = await joinWithGateway('contract', { REDIS_PREFIX: 'tsessions:' });
    nobody = createApiClient(posthorn.baseUrl, null);
  }, 120_000);

  afterAll(() => posthorn.stop());

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
        person: null,
        companies: null,
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

    it('is ignored when the request has an API key', async () => {
      const cookie = cookieOf(await signIn(posthorn.apiKey));
      const both = createApiClient(posthorn.baseUrl, 'wrong', {
        cookie,
        'x-posthorn-session': '1',
      });
      expectFailure(await both.get('/projects'), 401, 'unauthorized');
    });

    it('ends within seconds when its key is revoked', async () => {
      const { id, key } = await makeKey();
      const api = await signedIn(key);
      dataOf(await api.get('/webhooks'));
      dataOf(await posthorn.api.delete(`${KEYS}/${id}`));
      await eventually(
        'the end of the session',
        async () => (await api.get(SESSION)).status === 401,
      );
      expectFailure(await api.get('/webhooks'), 401, 'unauthorized');
    });

    it('ends when its key expires', async () => {
      const expiresAt = new Date(Date.now() + 8_000).toISOString();
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

    it('opens a session that makes keys without an end', async () => {
      const answer = await nobody.post(SESSION, { link: await makeLink() });
      const api = createSessionClient(posthorn.baseUrl, cookieOf(answer));
      expect(dataOf(await api.post(KEYS, { name: 'Lasting' }), 201)).toMatchObject({
        expiresAt: null,
      });
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
});

describe('Visits of the portal', () => {
  const { posthorn } = useCompany('contract');
  let appId: string;

  beforeAll(async () => {
    ({ id: appId } = await createResources(posthorn.api).app());
  }, 120_000);

  const makeLink = (api: ApiClient = posthorn.api): Promise<MadeLink> =>
    makePortalLink(api, appId, { capabilities: ['view'] });

  const visitWith = (cookie: string, id?: string): ApiClient =>
    createSessionClient(posthorn.baseUrl, cookie, id === undefined ? 'portal' : `portal ${id}`);

  describe('The sessions of one browser', () => {
    it('are not mixed: a replaced visit gets an error', async () => {
      const [first, second] = [await makeLink(), await makeLink()];
      await openLink(posthorn.baseUrl, first);
      const cookie = await openLink(posthorn.baseUrl, second);
      const before = visitWith(cookie, first.id);
      for (const path of ['/webhooks', PORTAL_SESSION]) {
        expectFailure(await before.get(path), 401, 'session_replaced');
        dataOf(await visitWith(cookie, second.id).get(path));
        dataOf(await visitWith(cookie, posthorn.companyId).get(path));
        expectFailure(await visitWith(cookie, 'comp_other').get(path), 401, 'session_replaced');
      }
      expectFailure(await before.delete(PORTAL_SESSION), 401, 'session_replaced');
      dataOf(await visitWith(cookie, second.id).get('/webhooks'));
    });

    it('are not mixed in the dashboard either', async () => {
      const nobody = createApiClient(posthorn.baseUrl, null);
      const cookie = cookieOf(await nobody.post(SESSION, { apiKey: posthorn.apiKey }));
      const named = (id: string) => createSessionClient(posthorn.baseUrl, cookie, `1 ${id}`);
      dataOf(await named(posthorn.companyId).get('/webhooks'));
      expectFailure(await named('comp_other').get('/webhooks'), 401, 'session_replaced');
    });

    it('do not open a link of another company than that of the page', async () => {
      const { token, id } = await makeLink();
      const header = { 'x-posthorn-session': 'portal comp_other' };
      const page = createApiClient(posthorn.baseUrl, null, header);
      expectFailure(await page.post(PORTAL_SESSION, { link: token }), 404, 'link_unknown');
      dataOf(await visitWith(await openLink(posthorn.baseUrl, { token, id })).get('/webhooks'));
    });

    it('do not stand in for each other: a visitor gets to the sign-in of the dashboard', async () => {
      const cookie = await openLink(posthorn.baseUrl, await makeLink());
      const dashboard = createSessionClient(posthorn.baseUrl, cookie);
      expectFailure(await dashboard.get(SESSION), 401, 'unauthorized');
      expectFailure(await dashboard.get('/webhooks'), 401, 'unauthorized');
    });
  });

  const revoke = (id: string, api = posthorn.api) => api.delete(`/api/v1/portal-links/${id}`);

  describe('The end of a visit', () => {
    it('comes when its link is revoked, also for its stream, and is audited', async () => {
      const link = await makeLink();
      const cookie = await openLink(posthorn.baseUrl, link);
      const visitor = visitWith(cookie, link.id);
      dataOf(await visitor.get('/webhooks'));
      const headers = { cookie, 'x-posthorn-session': 'portal' };
      const stream = await fetch(`${posthorn.baseUrl}/api/v1/live`, { headers });
      expect(stream.status).toBe(200);
      expect((await revoke(link.id)).status).toBe(200);
      for (const path of ['/webhooks', PORTAL_SESSION]) {
        expectFailure(await visitor.get(path), 401, 'unauthorized');
      }
      await stream.text();
      const [event] = await readAuditEvents(posthorn.api, { action: 'portal_link.revoked' });
      expect(event).toMatchObject({ target: { kind: 'portalLink', id: link.id }, outcome: 'done' });
      expectNotFound(await revoke(link.id));
    });

    it('comes before it began when its link is revoked', async () => {
      const { id, token } = await makeLink();
      expect((await revoke(id)).status).toBe(200);
      const nobody = createApiClient(posthorn.baseUrl, null);
      expectFailure(await nobody.post(PORTAL_SESSION, { link: token }), 410, 'link_revoked');
    });

    it('comes by signing out, also for who has a copy of the cookie', async () => {
      const link = await makeLink();
      const cookie = await openLink(posthorn.baseUrl, link);
      const visitor = visitWith(cookie, link.id);
      dataOf(await visitor.get('/webhooks'));
      const answer = await visitor.delete(PORTAL_SESSION);
      expect([answer.status, cookieOf(answer)]).toEqual([200, 'posthorn_portal=']);
      expectFailure(await visitor.get('/webhooks'), 401, 'unauthorized');
      const [ended] = await readAuditEvents(posthorn.api, { action: 'portal_link.revoked' });
      const { id: linkId } = link;
      const actor = { kind: 'portalLink', linkId };
      expect(ended).toMatchObject({ actor, target: { kind: 'portalLink', id: linkId } });
      const beside = await openLink(posthorn.baseUrl, await makeLink());
      dataOf(await visitWith(beside).get('/webhooks'));
    });

    it('comes with the end of its app', async () => {
      const { id } = await createResources(posthorn.api).app();
      const link = await makePortalLink(posthorn.api, id, { capabilities: ['view'] });
      const visitor = visitWith(await openLink(posthorn.baseUrl, link));
      dataOf(await visitor.get('/webhooks'));
      await posthorn.api.delete(`/api/v1/apps/${id}`, { companyid: posthorn.companyId });
      await eventually('the end', async () => (await visitor.get('/webhooks')).status === 401);
    });

    it('is not for a key of another app to bring about', async () => {
      const { id } = await makeLink();
      const { id: otherId } = await createResources(posthorn.api).app();
      const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Other', appId: otherId });
      const { key } = dataOf<{ key: string }>(made, 201);
      expectNotFound(await revoke(id, createApiClient(posthorn.baseUrl, key)));
      expectNotFound(await revoke('plnk_unknown'));
    });
  });
});

describe('The stream of attempts', () => {
  const LIVE = '/api/v1/live';

  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();

  interface Watching {
    response: Response;
    text: () => string;
    isEnded: () => boolean;
    stop: () => void;
  }

  async function watch(headers: Record<string, string>): Promise<Watching> {
    const controller = new AbortController();
    const { signal } = controller;
    const response = await fetch(posthorn.baseUrl + LIVE, { headers, signal });
    let text = '';
    let isEnded = false;
    const read = async (): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array);
    };
    void read()
      .catch(() => undefined)
      .finally(() => {
        isEnded = true;
      });
    return {
      response,
      text: () => text,
      isEnded: () => isEnded,
      stop: () => {
        controller.abort();
      },
    };
  }

  it('sends attempts as they end, with a key and with a session', async () => {
    const nobody = createApiClient(posthorn.baseUrl, null);
    const cookie = cookieOf(await nobody.post(SESSION, { apiKey: posthorn.apiKey }));
    const watching = [
      await watch({ 'x-api-key': posthorn.apiKey }),
      await watch({ cookie, 'x-posthorn-session': '1' }),
    ];
    const { appId, webhookId } = await posthorn.api.createTarget(receiver.url);
    const sent: string[] = [];
    await eventually('news', async () => {
      sent.push((await posthorn.api.send({ appId }, { n: sent.length })).messageId);
      return watching.every(({ text }) => text().includes('event: attempt'));
    });
    for (const { response, text, stop } of watching) {
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      expect(response.headers.get('cache-control')).toBe('no-store');
      const [, data = ''] = /event: attempt\ndata: (.*)\n/.exec(text()) ?? [];
      const attempt = JSON.parse(data) as { messageId: string };
      expect(attempt).toMatchObject({
        webhookId,
        appId,
        outcome: 'success',
        status: 'delivered',
        attemptNumber: 1,
      });
      expect(sent).toContain(attempt.messageId);
      stop();
    }
  });

  it('sends a key of one app no attempt of another app', async () => {
    const [ours, theirs] = [
      await posthorn.api.createTarget(receiver.url),
      await posthorn.api.createTarget(receiver.url),
    ];
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'A', appId: ours.appId });
    const { key } = dataOf<{ key: string }>(made, 201);
    const { text, stop } = await watch({ 'x-api-key': key });
    await eventually('news', async () => {
      await posthorn.api.send({ appId: theirs.appId }, {});
      await posthorn.api.send({ appId: ours.appId }, {});
      return text().includes(ours.appId);
    });
    expect(text()).not.toContain(theirs.appId);
    stop();
  });

  it('ends within seconds when its key is revoked', async () => {
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Gone' });
    const { id, key } = dataOf<{ id: string; key: string }>(made, 201);
    const watching = await watch({ 'x-api-key': key });
    expect(watching.isEnded()).toBe(false);
    dataOf(await posthorn.api.delete(`/api/v1/api-keys/${id}`));
    await eventually('the end', watching.isEnded);
  });

  it('ends when its client closes the sending side of its connection', async () => {
    const head = `GET ${LIVE} HTTP/1.1\r\nHost: a\r\nx-api-key: ${posthorn.apiKey}\r\n\r\n`;
    const { socket, until, closed } = openConnection(Number(posthorn.env.PORT), head);
    await until(/: open/);
    socket.end();
    await closed;
  });

  it('is for callers that may read', async () => {
    const made = await posthorn.api.post('/api/v1/api-keys', {
      name: 'W',
      scopes: ['keys:write'],
    });
    const { key } = dataOf<{ key: string }>(made, 201);
    expect((await fetch(posthorn.baseUrl + LIVE, { headers: { 'x-api-key': key } })).status).toBe(
      403,
    );
    expect((await fetch(posthorn.baseUrl + LIVE)).status).toBe(401);
    expect((await fetch(posthorn.baseUrl + LIVE, { method: 'POST' })).status).toBe(405);
  });
});
