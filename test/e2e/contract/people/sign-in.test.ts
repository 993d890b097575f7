import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  aTime,
  anId,
  dataOf,
  expectDeleted,
  expectFailure,
} from '../../../support/api/expect-answers.ts';
import { createApiClient } from '../../../support/api/api-client.ts';
import { makeSignInLink } from '../../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { insertPeople } from '../../../support/stores/insert-people.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import { SESSION } from '../../../support/api/session-client.ts';
import {
  type CompanyWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';

interface Lasting {
  startedAt: string;
  expiresAt: string;
}

describe('People who sign in at the issuer', () => {
  let posthorn: CompanyWithIssuer;

  beforeAll(async () => {
    posthorn = await joinWithIssuer('tpeople:');
    const groups = [
      { group: 'sign-in-platform', role: 'admin' },
      { group: 'sign-in-helpdesk', role: 'support' },
      { group: 'sign-in-all', role: 'viewer' },
    ];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }, 120_000);

  afterAll(() => posthorn.stop());

  it('enter the company that names one of their groups, with the highest role', async () => {
    const browser = posthorn.browser();
    const claims = {
      name: 'Ada',
      email: 'ada@example.com',
      groups: ['sign-in-all', 'sign-in-platform'],
    };
    const to = '/dashboard/webhooks?status=failing';
    expect(await browser.signIn({ sub: 'ada', claims }, { to })).toBe(to);
    expect(browser.cookies.size).toBe(1);
    const session = dataOf<{ person: { id: string } }>(await browser.api.get(SESSION));
    expect(session).toMatchObject({
      kind: 'company',
      company: { id: posthorn.companyId, name: 'Test' },
      person: { id: anId('usr'), name: 'Ada', role: 'admin' },
      companies: [{ id: posthorn.companyId, name: 'Test', role: 'admin' }],
      expiresAt: aTime,
    });
    const { id } = session.person;
    const me = dataOf(await browser.api.get('/api/v1/me'));
    expect(me).toMatchObject({ person: { id, name: 'Ada', role: 'admin' }, scopes: ['admin'] });
    const read = dataOf<{ sessions: Lasting[] }>(await posthorn.api.get(`/api/v1/people/${id}`));
    const [lasting] = read.sessions;
    const lastsMs = Date.parse(lasting?.expiresAt ?? '') - Date.parse(lasting?.startedAt ?? '');
    // OIDC_SESSION, to the minute.
    expect(Math.ceil(lastsMs / 60_000)).toBe(8 * 60);
    const events = await readAuditEvents(posthorn.api, { actor: id });
    expect(events).toMatchObject([
      {
        action: 'person.signed_in',
        actor: { kind: 'person', personId: id, name: 'Ada' },
        target: { kind: 'person', id },
        outcome: 'done',
      },
    ]);
  });

  it('are known to one table of sign-ins and of requests to the issuer', async () => {
    const metrics = await (await fetch(`${posthorn.gateway.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/posthorn_sign_ins_total\{way="issuer",result="done"\} [1-9]/);
    for (const request of ['discovery', 'token', 'keys']) {
      const count = `posthorn_issuer_requests_total\\{request="${request}",result="done"\\} [1-9]`;
      expect(metrics).toMatch(new RegExp(count));
    }
  });

  it('are the only ones with OIDC_ONLY, but for links of operators', async () => {
    const only = await posthorn.startAnother({ OIDC_ONLY: 'true' });
    const { api } = only.browser();
    expect(dataOf(await api.get('/dashboard/api/sign-in'))).toMatchObject({ apiKey: false });
    const byKey = await api.post(SESSION, { apiKey: posthorn.apiKey });
    expectFailure(byKey, 403, 'sign_in_by_key_off');
    dataOf(await api.post(SESSION, { link: await makeSignInLink(posthorn) }));
    const keyed = createApiClient(only.baseUrl, posthorn.apiKey);
    dataOf(await keyed.get('/api/v1/me'));
  });

  it('come in with a token that ended within the 30 s by which clocks may differ', async () => {
    const claims = { groups: ['sign-in-all'] };
    const faults = { claims: { exp: Math.floor(Date.now() / 1_000) - 5 } };
    const login = { sub: 'late', claims, faults };
    expect(await posthorn.browser().signIn(login)).toBe('/dashboard/');
  });

  it('come back to PUBLIC_URL, whatever address the gateway is reached under [security]', async () => {
    const browser = posthorn.browser();
    const url = await browser.begin();
    const asked = new URL(url).searchParams.get('redirect_uri');
    expect(asked).toBe(`${posthorn.baseUrl}/dashboard/api/oidc/callback`);
    const login = { sub: 'proxied', claims: { groups: ['sign-in-all'] } };
    const back = new URL(posthorn.issuer.signIn(url, login));
    back.hostname = 'localhost';
    // The issuer refuses a code that is exchanged with another address than it was asked for with.
    expect(await browser.comeBack(back.href)).toBe('/dashboard/');
  });

  it('leaves no secret, code, token and claim in a log [security]', () => {
    expect(posthorn.issuer.secrets.length).toBeGreaterThan(20);
    expect(posthorn.leaks()).toEqual([]);
  });
});

describe('A gateway without an issuer', () => {
  let alone: OwnGateway;

  beforeAll(async () => {
    alone = await joinWithGateway('contract', { REDIS_PREFIX: 'tnoissuer:' });
  }, 120_000);

  afterAll(() => alone.stop());

  it('has keys and links only, and no people', async () => {
    const nobody = createApiClient(alone.baseUrl, null);
    const offers = { oidc: null, apiKey: true, refused: null };
    expect(dataOf(await nobody.get('/dashboard/api/sign-in'))).toEqual(offers);
    const missing = [
      await nobody.post('/dashboard/api/oidc', {}),
      await nobody.get('/dashboard/api/oidc/callback?code=1&state=2'),
      await nobody.post('/dashboard/api/oidc/back-channel-logout', {}),
      await alone.api.get('/api/v1/people'),
      await alone.api.get('/api/v1/people/usr_1'),
      await alone.api.put('/api/v1/people-settings', { groups: [] }),
      await alone.api.post('/api/v1/invitations', { role: 'viewer' }),
    ];
    for (const answer of missing) expectFailure(answer, 404, 'route_not_found');
    dataOf(await nobody.post(SESSION, { apiKey: alone.apiKey }));
  });

  it('shows and removes people who could sign in before', async () => {
    const [id = ''] = await insertPeople(alone.env.MONGODB_URL, alone.companyId, 1);
    const people = dataOf(await alone.api.get('/api/v1/people'));
    expect(people).toMatchObject([{ id, role: 'viewer', source: 'invitation' }]);
    expectDeleted(await alone.api.delete(`/api/v1/people/${id}`));
    expectFailure(await alone.api.get('/api/v1/people'), 404, 'route_not_found');
  });
});
