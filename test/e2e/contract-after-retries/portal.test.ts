import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Capability } from '@posthorn/domain/access.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
} from '../../support/api/expect-answers.ts';
import {
  comparable,
  createOneOfEach,
  everythingOf,
  type Ids,
  kindOf,
  unknownLike,
} from '../../support/api/one-of-each.ts';
import {
  type Place,
  placesOf,
  readOperations,
  requestWith,
} from '../../support/api/request-places.ts';
import { createResources, type ShownWebhook } from '../../support/api/resources.ts';
import { routeTable } from '../../support/api/route-table.ts';
import {
  cookieOf,
  createSessionClient,
  makePortalLink,
  openLink,
  PORTAL_SESSION,
  SESSION,
} from '../../support/api/session-client.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('The portal', () => {
  /** Stands in every text of the other app. */
  const MARK = 'only-theirs';

  const { posthorn } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  /** With a key of the whole company. */
  let company: ApiClient;
  let nobody: ApiClient;
  let ours: Ids;
  let theirs: Ids;

  beforeAll(async () => {
    receiver.answerWith(failing(99));
    const { baseUrl, apiKey, companyId: companyid } = posthorn;
    company = createApiClient(baseUrl, apiKey, { companyid });
    nobody = createApiClient(baseUrl, null);
    ours = await createOneOfEach(company, receiver.url, 'ours');
    theirs = await createOneOfEach(company, receiver.url, MARK);
  }, 120_000);

  const LINK = { expiresInSeconds: 600, capabilities: ['view'] };

  const askLink = (fields: object = {}, api = company, appId = ours.appId): Promise<ApiAnswer> =>
    api.post(`/api/v1/apps/${appId}/portal-links`, { ...LINK, ...fields });

  async function makeLink(fields: object = {}, api = company): Promise<string> {
    const { url } = dataOf<{ url: string }>(await askLink(fields, api), 201);
    return url.split('#')[1] ?? '';
  }

  const open = (link: string): Promise<ApiAnswer> => nobody.post(PORTAL_SESSION, { link });

  async function visit(...capabilities: Capability[]): Promise<ApiClient> {
    const answer = await open(await makeLink({ capabilities }));
    return createSessionClient(posthorn.baseUrl, cookieOf(answer), 'portal');
  }

  const everything = (): Promise<ApiClient> =>
    visit('view', 'manage', 'secrets', 'resend', 'controlDeliveries');

  describe('A link to the portal', () => {
    it('opens a visit of one app, with its theme, until it expires', async () => {
      const theme = { name: 'Acme', primaryColor: '#1c7ed6', colorScheme: 'dark' };
      const asked = { theme, path: '/webhooks', capabilities: ['resend'] };
      const made = dataOf<{ url: string; expiresAt: string }>(await askLink(asked), 201);
      expect(made).toEqual({ id: anId('plnk'), url: expect.any(String), expiresAt: aTime });
      const [page, token = ''] = made.url.split('#');
      const { baseUrl, companyId } = posthorn;
      expect(page).toBe(`${baseUrl}/dashboard/portal/${companyId}/webhooks`);

      const answer = await open(token);
      const session = {
        kind: 'portal',
        company: { id: companyId, name: 'Test' },
        key: { id: anId('plnk'), scopes: ['read', 'messages:write'], appId: ours.appId },
        expiresAt: made.expiresAt,
        portal: {
          app: { id: ours.appId, name: expect.any(String) },
          capabilities: ['view', 'resend'],
          theme,
        },
        person: null,
        companies: null,
      };
      expect(dataOf(answer)).toEqual(session);
      expect(answer.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Strict/);
      const api = createSessionClient(baseUrl, cookieOf(answer), 'portal');
      expect(dataOf(await api.get(PORTAL_SESSION))).toEqual(session);
    });

    it('opens once, and returns why it does not open again', async () => {
      const link = await makeLink();
      const answers = await Promise.all(Array.from({ length: 5 }, () => open(link)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410, 410]);
      expectFailure(await open(link), 410, 'link_used');
    });

    it('is unknown when it was changed, and at the sign-in to the dashboard', async () => {
      const link = await makeLink();
      for (const changed of [`${link}x`, link.slice(1), 'x']) {
        expectFailure(await open(changed), 404, 'link_unknown');
      }
      expectFailure(await nobody.post(SESSION, { link }), 404, 'link_unknown');
    });

    it('ends, with its visit, at the end of the key that made it', async () => {
      // After the links are made and one of them is opened, however busy the machine is.
      const expiresAt = new Date(Date.now() + 10_000).toISOString();
      const made = await company.post('/api/v1/api-keys', { name: 'Short', expiresAt });
      const key = createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
      const [link, unused] = [await makeLink({}, key), await makeLink({}, key)];
      const answer = await open(link);
      expect(dataOf<{ expiresAt: string }>(answer).expiresAt).toBe(expiresAt);
      const api = createSessionClient(posthorn.baseUrl, cookieOf(answer), 'portal');
      await eventually('its end', async () => (await api.get('/webhooks')).status === 401);
      expectFailure(await open(unused), 410, 'link_expired');
    });

    it('ends its visits when the key that made it is revoked', async () => {
      const made = await company.post('/api/v1/api-keys', { name: 'Leaked' });
      const { id, key } = dataOf<{ id: string; key: string }>(made, 201);
      const api = createApiClient(posthorn.baseUrl, key);
      const [link, unused] = [await makeLink({}, api), await makeLink({}, api)];
      const visitor = createSessionClient(posthorn.baseUrl, cookieOf(await open(link)), 'portal');
      dataOf(await visitor.get('/webhooks'));
      dataOf(await company.delete(`/api/v1/api-keys/${id}`));
      await eventually('the end', async () => (await visitor.get('/webhooks')).status === 401);
      expectFailure(await open(unused), 410, 'link_revoked');
    });

    it('grants only rights of its key, and only apps of the company', async () => {
      const made = await company.post('/api/v1/api-keys', {
        name: 'Editor',
        scopes: ['read', 'webhooks:write'],
        appId: ours.appId,
      });
      const editor = createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
      dataOf(await askLink({ capabilities: ['secrets'] }, editor), 201);
      // Who manages sends test messages.
      for (const capability of ['resend', 'manage']) {
        const asked = await askLink({ capabilities: [capability] }, editor);
        expectFailure(asked, 403, 'insufficient_scope');
      }
      expectFailure(await askLink({}, editor, theirs.appId), 404, 'not_found');
      expectFailure(await askLink({}, company, unknownLike(ours.appId)), 404, 'not_found');
    });

    it('is refused with the name of each field that is wrong', async () => {
      const theme = { logoUrl: 'javascript:alert(1)' };
      const answer = await askLink({ expiresInSeconds: 59, path: '//evil.example', theme });
      expectInvalid(answer, 'expiresInSeconds', 'path', 'theme.logoUrl');
    });
  });

  describe('A visitor of the portal', () => {
    it('gets 404 for everything of another app, wherever an operation takes an id', async () => {
      const api = await everything();
      const places = placesOf(await readOperations(posthorn.baseUrl));
      const before = await everythingOf({ api: company, ids: theirs });
      const asked: string[] = [];
      for (const place of places) {
        const kind = kindOf(place, theirs);
        if (!kind || place.name === 'cursor') continue;
        const ask = (id: string): Promise<ApiAnswer> => {
          const { method, path, body } = requestWith(place, id, ours);
          return api.request(method, path, body);
        };
        const [id, random] = [theirs[kind], unknownLike(theirs[kind])];
        const [answer, expected] = [await ask(id), await ask(random)];
        const name = `${place.operation.method} ${place.operation.path} ${place.name}`;
        expect([name, comparable(answer, id)]).toEqual([name, comparable(expected, random)]);
        expect([name, answer.status]).toEqual([name, 404]);
        asked.push(name);
      }
      expect(asked.length).toBeGreaterThan(40);
      expect(await everythingOf({ api: company, ids: theirs })).toEqual(before);
    });

    it('gets 404 for all routes outside of the portal', async () => {
      const api = await everything();
      for (const route of routeTable()) {
        if (route.portal) continue;
        const path = `/api/v1${route.path.replaceAll(/:\w+/g, 'unknown')}`;
        const answer = await api.request(
          route.method.toUpperCase(),
          path,
          route.body ? {} : undefined,
        );
        expectFailure(answer, 404, 'route_not_found');
      }
    });

    it('sees only its app in every list', async () => {
      const api = await everything();
      const lists = ['/webhooks', '/api/v1/webhook-messages', '/api/v1/stats'];
      const shown = JSON.stringify(await Promise.all(lists.map((path) => api.get(path))));
      expect(shown).toContain(ours.webhookId);
      expect(shown).toContain(ours.messageId);
      for (const id of [...Object.values(theirs), MARK]) expect(shown).not.toContain(id);
    });

    it('sees secrets only with that capability, also in what it changes', async () => {
      const secretsOf = async (api: ApiClient): Promise<string> => {
        const { appId } = ours;
        const url = `${receiver.url}/portal`;
        const created = dataOf<ShownWebhook>(await api.post('/webhooks', { appId, url }), 201);
        const path = `/webhooks/${created.id}`;
        const answers = [
          await api.get(path),
          await api.get('/webhooks'),
          await api.put(path, { name: 'Changed' }),
          await api.post(`/api/v1${path}/rotate-secret`, {}),
          await api.delete(path),
        ];
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
        return JSON.stringify([created, answers.map(({ body }) => body)]);
      };
      expect(await secretsOf(await visit('manage'))).not.toContain('whsec_');
      expect(await secretsOf(await visit('manage', 'secrets'))).toContain('whsec_');
    });

    it('has only the capabilities of the link, and has its name in the audit log', async () => {
      const api = await visit('view');
      const path = `/webhooks/${ours.webhookId}`;
      const refused = [
        await api.put(path, { name: 'Changed' }),
        await api.delete(path),
        await api.post(`/api/v1${path}/test`, {}),
        await api.post(`/api/v1${path}/resend-failed`, { since: new Date(0).toISOString() }),
      ];
      for (const answer of refused) expectFailure(answer, 403, 'insufficient_scope');

      const manager = await visit('manage');
      dataOf(await manager.put(path, { name: 'By a visitor' }));
      const session = dataOf<{ key: { id: string } }>(await manager.get(PORTAL_SESSION));
      const events = await readAuditEvents(company, { actor: session.key.id });
      expect(events.map(({ action, actor }) => [action, actor])).toEqual([
        ['webhook.updated', { kind: 'portalLink', linkId: session.key.id }],
        ['portal.signed_in', { kind: 'portalLink', linkId: session.key.id }],
      ]);
      const made = { targetId: session.key.id, action: 'portal_link.created' };
      const [event] = await readAuditEvents(company, made);
      expect(event).toMatchObject({ actor: { kind: 'apiKey' }, outcome: 'done' });
    });

    it('may abort a replay with each of two capabilities, and a resend with one of them', async () => {
      const { appId } = ours;
      const since = new Date().toISOString();
      const url = `${receiver.url}/aborted`;
      const { id } = dataOf<ShownWebhook>(await company.post('/webhooks', { appId, url }), 201);
      const [controller, resender] = [await visit('controlDeliveries'), await visit('resend')];
      const begun = async (api: ApiClient, what: string): Promise<string> => {
        const answer = await api.post(`/api/v1/webhooks/${id}/${what}`, { since });
        return `/api/v1/resends/${dataOf<{ id: string }>(answer, 202).id}/abort`;
      };
      const replay = await begun(controller, 'replay-missing');
      for (const api of [controller, resender]) dataOf(await api.post(replay, {}));
      await eventually('its end', async () => {
        const shown = await company.get(replay.replace('/abort', ''));
        return dataOf<{ status: string }>(shown).status !== 'running';
      });
      const resend = await begun(resender, 'resend-failed');
      expectFailure(await controller.post(resend, {}), 403, 'insufficient_scope');
      dataOf(await resender.post(resend, {}));
      dataOf(await company.delete(`/webhooks/${id}`));
    });

    it('is not taken for a session of the dashboard', async () => {
      const cookie = cookieOf(await open(await makeLink()));
      const renamed = cookie.replace('posthorn_portal', 'posthorn_session');
      const api = createSessionClient(posthorn.baseUrl, renamed);
      expectFailure(await api.get('/webhooks'), 401, 'unauthorized');
    });
  });
});

describe('A visitor who may change webhooks and not see secrets', () => {
  const SECRET = 'only-the-owner-knows';
  const MASK = '********';

  const { posthorn } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let visitor: ApiClient;
  let appId: string;

  beforeAll(async () => {
    ({ id: appId } = await createResources(posthorn.api).app());
    const link = await makePortalLink(posthorn.api, appId, { capabilities: ['manage'] });
    const cookie = await openLink(posthorn.baseUrl, link);
    visitor = createSessionClient(posthorn.baseUrl, cookie, 'portal');
  }, 120_000);

  async function createWebhook(fields: object): Promise<string> {
    const body = { appId, url: `${receiver.url}/secrets`, ...fields };
    return dataOf<ShownWebhook>(await posthorn.api.post('/webhooks', body), 201).id;
  }

  const storedOf = async (id: string): Promise<string> =>
    JSON.stringify(dataOf(await posthorn.api.get(`/webhooks/${id}`)));

  it.each([
    [
      'basicAuthPassword',
      { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: SECRET },
    ],
    ['apiKey', { authMethod: 'apiKey', apiKey: SECRET, apiKeyHeader: 'X-Key' }],
    ['customHeaders', { customHeaders: [{ key: 'X-Auth', value: SECRET }] }],
  ])('cannot have %s sent to a server of their own', async (path, fields) => {
    const id = await createWebhook(fields);
    const url = `${receiver.url.replace('127.0.0.1', 'localhost')}/mine`;
    expectInvalid(await visitor.put(`/webhooks/${id}`, { url }), path);
    expect(await storedOf(id)).not.toContain('/mine');
    dataOf(await visitor.put(`/webhooks/${id}`, { url: `${receiver.url}/other` }));
  });

  it('cannot have a client secret sent to a token server of their own', async () => {
    const oauth2TokenUrl = 'https://login.example.com/token';
    const client = { oauth2TokenUrl, oauth2ClientId: 'c', oauth2ClientSecret: SECRET };
    const id = await createWebhook({ authMethod: 'oauth2', ...client });
    const path = `/webhooks/${id}`;
    const elsewhere = { oauth2TokenUrl: 'https://mine.example.net/token' };
    expectInvalid(await visitor.put(path, elsewhere), 'oauth2ClientSecret');
    dataOf(await visitor.put(path, { ...elsewhere, oauth2ClientSecret: 'own' }));
    expect(await storedOf(id)).not.toContain(SECRET);
  });

  it('saves what it was shown without changing what it was not', async () => {
    const id = await createWebhook({
      customHeaders: [
        { key: 'X-Auth', value: SECRET },
        { key: 'X-Tenant', value: '1' },
      ],
    });
    const shown = dataOf<{ customHeaders: object[] }>(await visitor.get(`/webhooks/${id}`));
    expect(shown.customHeaders).toEqual([
      { key: 'X-Auth', value: MASK },
      { key: 'X-Tenant', value: '1' },
    ]);
    const { customHeaders } = shown;
    dataOf(await visitor.put(`/webhooks/${id}`, { customHeaders, name: 'Saved' }));
    const stored = await storedOf(id);
    expect(stored).toContain(SECRET);
    expect(stored).not.toContain(MASK);
    const renamed = [{ key: 'X-Token', value: MASK }];
    expectInvalid(
      await visitor.put(`/webhooks/${id}`, { customHeaders: renamed }),
      'customHeaders.0.value',
    );
  });
});

/** A key of one app knows nothing of people, and only reads event types (docs/contract.md C26.5, C28.1). */
const isOfCompany = (kind: string, method: string): boolean =>
  kind === 'personId' || kind === 'invitationId' || (kind === 'eventTypeName' && method !== 'GET');

describe('With a key of one app [security]', () => {
  /** Stands in every text of the other app. */
  const MARK = 'only-theirs';

  const { posthorn } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  /** With a key of the whole company. */
  let company: ApiClient;
  /** With a key of our app. */
  let api: ApiClient;
  let ours: Ids;
  let theirs: Ids;

  beforeAll(async () => {
    receiver.answerWith(failing(99));
    const { baseUrl, apiKey, companyId: companyid } = posthorn;
    company = createApiClient(baseUrl, apiKey, { companyid });
    ours = await createOneOfEach(company, receiver.url, 'ours');
    theirs = await createOneOfEach(company, receiver.url, MARK);
    const created = await company.post('/api/v1/api-keys', { name: 'ours', appId: ours.appId });
    const { id: keyId, key } = dataOf<{ id: string; key: string }>(created, 201);
    ours = { ...ours, keyId };
    api = createApiClient(baseUrl, key, { companyid });
  }, 120_000);

  async function ask(place: Place, id: string): Promise<ApiAnswer> {
    const { method, path, body } = requestWith(place, id, ours);
    return api.request(method, path, body);
  }

  it('everything of another app gets 404 as an unknown id does, wherever an operation takes one', async () => {
    const places = placesOf(await readOperations(posthorn.baseUrl));
    const before = await everythingOf({ api: company, ids: theirs });
    const asked: string[] = [];
    for (const place of places) {
      const kind = kindOf(place, theirs);
      if (!kind || place.name === 'cursor') continue;
      const [id, random] = [theirs[kind], unknownLike(theirs[kind])];
      const [answer, expected] = [await ask(place, id), await ask(place, random)];
      const { method, path } = place.operation;
      const name = `${method} ${path} ${place.where} ${place.name}`;
      expect([name, comparable(answer, id)]).toEqual([name, comparable(expected, random)]);
      const refusal = isOfCompany(kind, method) ? [403, 'insufficient_scope'] : [404, 'not_found'];
      expect([name, answer.status, answer.body.code]).toEqual([name, ...refusal]);
      asked.push(name);
    }
    expect(asked.length).toBeGreaterThan(40);
    expect(await everythingOf({ api: company, ids: theirs })).toEqual(before);
  });

  it('everything of its own app is shown, and nothing else in any list', async () => {
    const shown = JSON.stringify(await everythingOf({ api, ids: ours }));
    // No list has the links to the portal.
    const listed = Object.entries({ ...ours, linkId: ours.appId });
    for (const [kind, id] of listed) if (!isOfCompany(kind, 'GET')) expect(shown).toContain(id);
    for (const id of [...Object.values(theirs), MARK]) expect(shown).not.toContain(id);
  });

  it('projects and apps are neither created nor changed, nor are global webhooks', async () => {
    const { projectId } = ours;
    const url = receiver.url;
    const refused = [
      await api.post('/projects', { name: 'New' }),
      await api.put(`/api/v1/projects/${projectId}`, { name: 'Changed' }),
      await api.delete(`/api/v1/projects/${projectId}`),
      await api.post('/apps', { name: 'New', projectId }),
      await api.post('/webhooks', { projectId, environmentId: 'live', url }),
    ];
    for (const answer of refused) expectFailure(answer, 403, 'insufficient_scope');
  });

  it('its webhooks are created, changed and deleted, and its messages sent', async () => {
    const make = createResources(api);
    const { appId } = ours;
    const { id } = await make.webhook({ appId, url: `${receiver.url}/more` });
    await api.put(`/webhooks/${id}`, { name: 'Changed' });
    expect(dataOf<ShownWebhook>(await api.get(`/webhooks/${id}`)).name).toBe('Changed');
    const { id: messageId } = await make.message({ webhookId: id });
    dataOf(await api.get(`/api/v1/webhook-messages/${messageId}`));
    dataOf(await api.delete(`/webhooks/${id}`));
  });

  it('keys are made for this app only', async () => {
    const made = dataOf<{ appId: string }>(await api.post('/api/v1/api-keys', { name: 'M' }), 201);
    expect(made.appId).toBe(ours.appId);
  });
});
