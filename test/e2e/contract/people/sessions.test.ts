import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { type ApiClient, createApiClient } from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import { SESSION } from '../../../support/api/session-client.ts';
import {
  type CompanyWithIssuer,
  type GatewayWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';
import type { PersonBrowser } from '../../../support/people/person-browser.ts';
import { createCompany } from '../../../support/process/companies.ts';
import { readEverything } from '../../../support/stores/stored-documents.ts';
import { eventually } from '../../../support/time/eventually.ts';

const PEOPLE = '/api/v1/people';
const LOGOUT = '/dashboard/api/oidc/back-channel-logout';
const SIGN_OUT = '/dashboard/api/session/sign-out';
/** Other test files give roles to groups in the same database. */
const group = (name: string): string => `sessions-${name}`;
const PREFIX = 'tsessionsofpeople:';

interface ShownSession {
  company: { id: string };
  person: { id: string; name: string; role: string };
  companies: { id: string; role: string }[];
  expiresAt: string;
}

describe('A session of a person', () => {
  let posthorn: CompanyWithIssuer;
  let second: GatewayWithIssuer;
  let mongo: MongoConnection;

  beforeAll(async () => {
    posthorn = await joinWithIssuer(PREFIX);
    second = await posthorn.startAnother();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    await giveRoles();
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await posthorn.stop();
  });

  async function giveRoles(): Promise<void> {
    const groups = [
      { group: group('admins'), role: 'admin' },
      { group: group('helpdesk'), role: 'support' },
      { group: group('staff'), role: 'viewer' },
    ];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }

  interface Entered {
    browser: PersonBrowser;
    id: string;
    /** The same session at the second gateway. */
    there: ApiClient;
  }

  async function enter(sub: string, groups: string[], more: object = {}): Promise<Entered> {
    const browser = posthorn.browser();
    const claims = { name: `Name of ${sub}`, groups: groups.map(group), ...more };
    expect(await browser.signIn({ sub, claims })).toBe('/dashboard/');
    const { person } = dataOf<ShownSession>(await browser.api.get(SESSION));
    const page = { cookie: cookieOf(browser), 'x-posthorn-session': '1' };
    const there = createApiClient(second.baseUrl, null, page);
    dataOf(await there.get('/api/v1/projects'));
    return { browser, id: person.id, there };
  }

  const WITHIN_MS = 2_000;

  /** From the moment at which the change was confirmed. */
  async function expectEnded({ there, browser }: Entered): Promise<void> {
    const startedMs = performance.now();
    const isOver = async () => (await there.get('/api/v1/projects')).status === 401;
    await eventually('the end of the session', isOver, WITHIN_MS * 10, 50);
    // The time of the check itself on a busy machine is not counted: it ends with a request.
    expect(performance.now() - startedMs).toBeLessThan(WITHIN_MS + 1_000);
    expectFailure(await browser.api.get(SESSION), 401, 'unauthorized');
  }

  const read = (id: string) => posthorn.api.get(`${PEOPLE}/${id}`);

  it('is shown to admins, and ended by hand, one or all', async () => {
    const one = await enter('hand', ['staff'], { email: 'hand@example.com' });
    const other = await enter('hand', ['staff']);
    expect(other.id).toBe(one.id);
    const person = dataOf<{ sessions: { id: string }[] }>(await read(one.id));
    const shown = { clientAddress: '127.0.0.1', startedAt: aTime, expiresAt: aTime };
    expect(person).toMatchObject({
      id: one.id,
      name: 'Name of hand',
      role: 'viewer',
      source: 'group',
      disabled: false,
      apiKeys: 0,
      sessions: [
        { id: anId('key'), ...shown },
        { id: anId('key'), ...shown },
      ],
    });
    const keys = dataOf<{ id: string }[]>(await posthorn.api.get('/api/v1/api-keys'));
    const [first] = person.sessions;
    expect(keys.map(({ id }) => id)).not.toContain(first?.id);
    expectNotFound(await posthorn.api.delete(`/api/v1/api-keys/${String(first?.id)}`));
    const path = `${PEOPLE}/${one.id}/end-sessions`;
    expect(dataOf(await posthorn.api.post(path, { sessionId: first?.id }))).toEqual({ ended: 1 });
    await expectEnded(one);
    dataOf(await other.browser.api.get(SESSION));
    expect(dataOf(await posthorn.api.post(path, {}))).toEqual({ ended: 1 });
    await expectEnded(other);
    expect(dataOf(await posthorn.api.post(path, {}))).toEqual({ ended: 0 });
  });

  it('ends with its live stream when the person is disabled', async () => {
    const entered = await enter('stream', ['staff']);
    const headers = { cookie: cookieOf(entered.browser), 'x-posthorn-session': '1' };
    const stream = await fetch(`${second.baseUrl}/api/v1/live`, { headers });
    expect(stream.status).toBe(200);
    const changed = await posthorn.api.put(`${PEOPLE}/${entered.id}`, { disabled: true });
    expect(dataOf(changed)).toMatchObject({ disabled: true, apiKeys: 0 });
    await expectEnded(entered);
    // Its end: the text is whole.
    expect(await stream.text()).toContain(': open');
  });

  const cookieOf = ({ cookies }: PersonBrowser): string =>
    [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');

  it('ends when its group loses or changes its role, and that of others goes on', async () => {
    const [staff, helpdesk] = [await enter('s', ['staff']), await enter('h', ['helpdesk'])];
    const groups = [{ group: group('helpdesk'), role: 'support' }];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
    await expectEnded(staff);
    dataOf(await helpdesk.there.get('/api/v1/projects'));
    await giveRoles();
    const changed = [{ group: group('helpdesk'), role: 'viewer' }];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups: changed }));
    await expectEnded(helpdesk);
    await giveRoles();
  });

  it('ends when the role of an invited person is changed, which groups decide about else', async () => {
    const made = await posthorn.api.post('/api/v1/invitations', { role: 'viewer' });
    const { url } = dataOf<{ url: string }>(made, 201);
    const browser = posthorn.browser();
    const [, invitation = ''] = url.split('#');
    expect(await browser.signIn({ sub: 'guest' }, { invitation })).toBe('/dashboard/');
    const { person } = dataOf<ShownSession>(await browser.api.get(SESSION));
    const changed = await posthorn.api.put(`${PEOPLE}/${person.id}`, { role: 'support' });
    expect(dataOf(changed)).toMatchObject({ role: 'support', source: 'invitation' });
    await eventually('its end', async () => (await browser.api.get(SESSION)).status === 401);
    expect(await browser.signIn({ sub: 'guest' })).toBe('/dashboard/');
    expect(dataOf(await browser.api.get(SESSION))).toMatchObject({ person: { role: 'support' } });
    const both = { sub: 'guest', claims: { groups: [group('admins')] } };
    expect(await browser.signIn(both)).toBe('/dashboard/');
    expect(dataOf(await browser.api.get(SESSION))).toMatchObject({ person: { role: 'admin' } });
    const { id } = await enter('grouped', ['staff']);
    const refused = await posthorn.api.put(`${PEOPLE}/${id}`, { role: 'admin' });
    expectFailure(refused, 409, 'role_by_group');
  });

  const logOut = (token: string, contentType = 'application/x-www-form-urlencoded') =>
    fetch(second.baseUrl + LOGOUT, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body: new URLSearchParams({ logout_token: token }).toString(),
    });

  it('ends when the issuer says so: by sid this one, by sub all of the person', async () => {
    const { issuer } = posthorn;
    const one = await enter('out', ['staff'], { sid: 'session-1-of-the-issuer' });
    const other = await enter('out', ['staff'], { sid: 'session-2-of-the-issuer' });
    const bySid = await issuer.logoutToken({ sid: 'session-1-of-the-issuer', sub: 'out' });
    const answer = await logOut(bySid);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    await expectEnded(one);
    dataOf(await other.there.get('/api/v1/projects'));
    expect((await logOut(bySid)).status).toBe(200);
    expect((await logOut(await issuer.logoutToken({ sub: 'out' }))).status).toBe(200);
    await expectEnded(other);
    const events = await readAuditEvents(posthorn.api, { action: 'person.sessions_ended' });
    expect(events[0]).toMatchObject({ actor: { kind: 'system' }, target: { id: one.id } });
  });

  it('goes on when a logout token is not valid [security]', async () => {
    const { issuer } = posthorn;
    const entered = await enter('stays', ['staff'], { sid: 'session-3-of-the-issuer' });
    const at = Math.floor(Date.now() / 1_000);
    const claims = { sub: 'stays' };
    const wrong = await Promise.all([
      issuer.logoutToken({ ...claims, iss: 'https://login.example.com' }),
      issuer.logoutToken({ ...claims, aud: 'another' }),
      issuer.logoutToken({ ...claims, iat: at - 600 }),
      issuer.logoutToken({ ...claims, iat: at + 600, exp: at + 900 }),
      issuer.logoutToken({ ...claims, exp: at - 600 }),
      issuer.logoutToken({ ...claims, events: {} }),
      issuer.logoutToken({ ...claims, nonce: 'n' }),
      issuer.logoutToken({}),
      issuer.logoutToken(claims, { signature: 'other_key' }),
      issuer.logoutToken(claims, { signature: 'hmac' }),
      issuer.logoutToken(claims, { signature: 'none' }),
      Promise.resolve('no token'),
      Promise.resolve(''),
    ]);
    for (const token of wrong) {
      const answer = await logOut(token);
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([400, 'no-store']);
    }
    const right = await issuer.logoutToken(claims);
    expect((await logOut(right, 'application/json')).status).toBe(400);
    expect((await logOut('x'.repeat(20_000))).status).toBe(413);
    dataOf(await entered.there.get('/api/v1/projects'));
  });

  it('is left with the way out of the issuer, which a stored ID token shortens', async () => {
    const entered = await enter('leaves', ['staff']);
    const other = await enter('leaves', ['staff']);
    const stranger = createApiClient(posthorn.baseUrl, null, {
      cookie: cookieOf(entered.browser),
    });
    expectFailure(await stranger.post(SIGN_OUT, {}), 401, 'unauthorized');
    const answer = await entered.browser.api.post(SIGN_OUT, {});
    const { endSessionUrl } = dataOf<{ endSessionUrl: string }>(answer);
    const url = new URL(endSessionUrl);
    expect(url.href.startsWith(`${posthorn.issuer.url}/end?`)).toBe(true);
    const { searchParams } = url;
    expect(searchParams.get('post_logout_redirect_uri')).toBe(
      `${posthorn.baseUrl}/dashboard/sign-in`,
    );
    expect(posthorn.issuer.secrets).toContain(searchParams.get('id_token_hint'));
    expect(searchParams.get('client_id')).toBe('posthorn');
    expect(entered.browser.cookies.size).toBe(0);
    await eventually(
      'the end at the second gateway',
      async () => (await entered.there.get('/api/v1/projects')).status === 401,
    );
    dataOf(await other.there.get('/api/v1/projects'));
    dataOf(await other.browser.api.post(SIGN_OUT, { everywhere: true }));
    const { id } = entered;
    expect(dataOf(await read(id))).toMatchObject({ sessions: [] });
    const events = await readAuditEvents(posthorn.api, { actor: id });
    expect(events.map(({ action }) => action)).toEqual([
      'person.signed_out',
      'person.signed_out',
      'person.signed_in',
      'person.signed_in',
    ]);
  });

  it('keeps no ID token of more than 4 KiB: the issuer then asks', async () => {
    const { browser } = await enter('long', ['staff'], { filler: 'x'.repeat(4_096) });
    const answer = await browser.api.post(SIGN_OUT, {});
    const { endSessionUrl } = dataOf<{ endSessionUrl: string }>(answer);
    expect(new URL(endSessionUrl).searchParams.has('id_token_hint')).toBe(false);
  });

  it('is a new one at each sign-in, and that of another person in the browser ends', async () => {
    const ada = await enter('ada', ['staff']);
    const before = cookieOf(ada.browser);
    const login = { sub: 'ada', claims: { groups: [group('staff')] } };
    expect(await ada.browser.signIn(login)).toBe('/dashboard/');
    expect(cookieOf(ada.browser)).not.toBe(before);
    const another = { sub: 'eve', claims: { groups: [group('staff')] } };
    expect(await ada.browser.signIn(another)).toBe('/dashboard/');
    const { sessions } = dataOf<{ sessions: object[] }>(await read(ada.id));
    // The first one, which no browser has any more, lasts until its end; the second was replaced by Eve.
    expect(sessions).toHaveLength(1);
  });

  it('is one of twenty of a person: the oldest ends', async () => {
    const first = await enter('many', ['staff']);
    const login = { sub: 'many', claims: { groups: [group('staff')] } };
    for (let count = 0; count < 20; count += 1) {
      expect(await posthorn.browser().signIn(login)).toBe('/dashboard/');
    }
    await expectEnded(first);
    expect(dataOf<{ sessions: object[] }>(await read(first.id)).sessions).toHaveLength(20);
  });

  it('is one of five attempts of a browser, in tabs of its own', async () => {
    const browser = posthorn.browser();
    const urls: string[] = [];
    for (let count = 0; count < 6; count += 1) urls.push(await browser.begin());
    expect(browser.cookies.size).toBe(5);
    const login = { sub: 'tabs', claims: { groups: [group('staff')] } };
    const backs = urls.map((url) => posthorn.issuer.signIn(url, login));
    expect(await browser.comeBack(backs[0] ?? '')).toBe('/dashboard/sign-in?error=sign_in_expired');
    for (const back of backs.slice(1)) expect(await browser.comeBack(back)).toBe('/dashboard/');
  });

  it('asks the issuer to ask again, only when that is wanted', async () => {
    const browser = posthorn.browser();
    const promptOf = async (asked: object) =>
      new URL(await browser.begin(asked)).searchParams.get('prompt');
    expect([await promptOf({}), await promptOf({ again: true })]).toEqual([null, 'login']);
  });

  it('enters another company that is open to the person, until the same end', async () => {
    const other = await createCompany(posthorn, 'Other');
    const owner = createApiClient(posthorn.baseUrl, other.apiKey);
    const groups = [{ group: group('staff'), role: 'support' }];
    dataOf(await owner.put('/api/v1/people-settings', { groups }));
    const third = await createCompany(posthorn, 'Third');
    const entered = await enter('mover', ['staff']);
    const { api } = entered.browser;
    const before = dataOf<ShownSession>(await api.get(SESSION));
    const ids = before.companies.map(({ id, role }) => `${id} ${role}`).sort();
    expect(ids).toEqual([`${posthorn.companyId} viewer`, `${other.companyId} support`].sort());
    const elsewhere = posthorn.companyId === before.company.id ? other : posthorn;
    const moved = await api.post(SESSION, { companyId: elsewhere.companyId });
    const after = dataOf<ShownSession>(moved);
    expect(after).toMatchObject({
      company: { id: elsewhere.companyId },
      expiresAt: before.expiresAt,
    });
    expect(dataOf(await api.get(SESSION))).toMatchObject({ company: { id: elsewhere.companyId } });
    await eventually(
      'the end of the session before',
      async () => (await entered.there.get('/api/v1/projects')).status === 401,
    );
    expectFailure(await api.post(SESSION, { companyId: third.companyId }), 403, 'no_role');
    const keyed = createApiClient(posthorn.baseUrl, null);
    expectFailure(await keyed.post(SESSION, { companyId: other.companyId }), 401, 'unauthorized');
    const back = await entered.browser.signIn({
      sub: 'mover',
      claims: { groups: [group('staff')] },
    });
    expect(back).toBe('/dashboard/');
    // The company used last.
    expect(dataOf(await api.get(SESSION))).toMatchObject({ company: { id: elsewhere.companyId } });
    const here = posthorn.browser();
    const login = { sub: 'mover', claims: { groups: [group('staff')] } };
    const asked = { companyId: before.company.id };
    expect(await here.signIn(login, asked)).toBe('/dashboard/');
    dataOf(await here.api.post(SIGN_OUT, { everywhere: true }));
    await eventually(
      'the end of the session in the other company',
      async () => (await api.get('/api/v1/projects')).status === 401,
    );
  });

  it('works at a gateway that does not know the issuer yet, with the rights of its role', async () => {
    const [port = 0] = await freePorts(1);
    const settings = { REDIS_PREFIX: PREFIX, PORT: String(port) };
    await posthorn.start('gateway', settings);
    const at = ({ browser }: Entered): ApiClient =>
      createApiClient(`http://127.0.0.1:${port}`, null, {
        cookie: cookieOf(browser),
        'x-posthorn-session': '1',
      });
    const { webhookId } = await posthorn.api.createTarget('http://127.0.0.1:9/');
    const hold = `/api/v1/webhooks/${webhookId}/hold`;
    const [vic, sam] = [await enter('vic', ['staff']), await enter('sam', ['helpdesk'])];
    expect(dataOf(await at(vic).get(SESSION))).toMatchObject({
      person: { id: vic.id, role: 'viewer' },
      companies: expect.arrayContaining([
        expect.objectContaining({ id: posthorn.companyId, role: 'viewer' }),
      ]),
    });
    expectFailure(await at(vic).post(hold, {}), 403, 'insufficient_scope');
    expect(dataOf(await at(sam).post(hold, {}))).toMatchObject({ held: { by: sam.id } });
    const renamed = await at(sam).put(`/api/v1/webhooks/${webhookId}`, { name: 'New' });
    expectFailure(renamed, 403, 'insufficient_scope');
    expectFailure(await at(vic).post('/dashboard/api/oidc', {}), 404, 'route_not_found');
    expect(dataOf(await at(sam).post(SIGN_OUT, {}))).toEqual({ endSessionUrl: null });
    await expectEnded(sam);
    dataOf(await posthorn.api.post(`${PEOPLE}/${vic.id}/end-sessions`, {}));
    await expectEnded({ ...vic, there: at(vic) });
  });

  it('of support holds and resumes, and changes no webhook', async () => {
    const { webhookId, appId } = await posthorn.api.createTarget('http://127.0.0.1:9/');
    const { browser, id } = await enter('sam', ['helpdesk']);
    for (const path of [`/api/v1/webhooks/${webhookId}`, `/api/v1/apps/${appId}`]) {
      const held = dataOf(await browser.api.post(`${path}/hold`, {}));
      expect(held).toMatchObject({ held: { by: id } });
      expect((await browser.api.post(`${path}/resume`, {})).status).toBe(202);
      expectFailure(await browser.api.put(path, { name: 'New' }), 403, 'insufficient_scope');
    }
    const shown = dataOf(await browser.api.get(`/api/v1/webhooks/${webhookId}`));
    expect(shown).toMatchObject({ secret: '********' });
    const viewer = await enter('vic', ['staff']);
    const hold = await viewer.browser.api.post(`/api/v1/webhooks/${webhookId}/hold`, {});
    expectFailure(hold, 403, 'insufficient_scope');
  });

  it('begins after the issuer has changed its key, without a restart', async () => {
    await posthorn.issuer.rotate();
    const login = { sub: 'rotated', claims: { groups: [group('staff')] } };
    const isIn = async () => (await posthorn.browser().signIn(login)) === '/dashboard/';
    // The keys are read again for one that is unknown, 60 s after they were read.
    await eventually('a sign-in with the new key', isIn, 110_000);
  });

  it('leaves no secret, code, token and claim in a log, and nothing but sealed tokens in MongoDB [security]', async () => {
    const { secrets } = posthorn.issuer;
    expect(secrets.length).toBeGreaterThan(100);
    expect(posthorn.leaks()).toEqual([]);
    const stored = JSON.stringify(await readEverything(mongo.db));
    expect(secrets.filter((secret) => secret !== '' && stored.includes(secret))).toEqual([]);
    expect(stored).not.toContain('session-1-of-the-issuer');
  });
});
