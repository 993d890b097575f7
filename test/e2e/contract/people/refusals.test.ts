import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient } from '../../../support/api/api-client.ts';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import { SESSION } from '../../../support/api/session-client.ts';
import {
  type CompanyWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';
import type { PersonBrowser } from '../../../support/people/person-browser.ts';
import type { Faults, Login } from '../../../support/people/scripted-issuer.ts';
import { createCompany } from '../../../support/process/companies.ts';
import { ADMIN } from '../../../support/process/posthorn.ts';
import { runProgram } from '../../../support/process/service-process.ts';
import { eventually } from '../../../support/time/eventually.ts';

const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
/** Other test files give roles to groups in the same database. */
const group = (name: string): string => `refusals-${name}`;
const ADA: Login = { sub: 'ada', claims: { name: 'Ada', groups: [group('platform')] } };

describe('A sign-in that is refused [security]', () => {
  let posthorn: CompanyWithIssuer;

  beforeAll(async () => {
    posthorn = await joinWithIssuer('trefusals:', { WRONG_KEYS_PER_MINUTE: '0' });
    const groups = [{ group: group('platform'), role: 'admin' }];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }, 120_000);

  afterEach(() => {
    posthorn.issuer.behave('well');
  });
  afterAll(() => posthorn.stop());

  const hasSession = async ({ api }: PersonBrowser): Promise<boolean> =>
    (await api.get(SESSION)).status === 200;

  async function expectRefused(browser: PersonBrowser, path: string, code: string): Promise<void> {
    expect(path).toBe(`/dashboard/sign-in?error=${code}`);
    expect(await hasSession(browser)).toBe(false);
    expect([...browser.cookies.keys()].filter((name) => name.includes('session'))).toEqual([]);
  }

  async function expectFaultRefused(faults: Faults, code: string): Promise<void> {
    const browser = posthorn.browser();
    await expectRefused(browser, await browser.signIn({ ...ADA, faults }), code);
  }

  it.each<[string, Faults]>([
    ['another nonce', { claims: { nonce: 'another' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['another issuer', { claims: { iss: 'https://login.example.com' } }],
    ['another audience', { claims: { aud: 'another' } }],
    ['its end behind it', { claims: { exp: nowSeconds() - 600, iat: nowSeconds() - 900 } }],
    ['no end', { claims: { exp: undefined } }],
    ['no subject', { claims: { sub: undefined } }],
    ['the signature of another key', { signature: 'other_key' }],
    ['the published key as the secret of its signature', { signature: 'hmac' }],
    ['no signature', { signature: 'none' }],
  ])('has an ID token with %s', async (_what, faults) => {
    await expectFaultRefused(faults, 'sign_in_invalid');
  });

  it('comes back with the name of another issuer, or without one (RFC 9207)', async () => {
    const iss = 'https://login.example.com';
    await expectFaultRefused({ answer: { iss } }, 'sign_in_invalid');
    await expectFaultRefused({ answer: { iss: undefined } }, 'sign_in_invalid');
  });

  it('comes back with an error of the issuer, whose words the log gets and no page does', async () => {
    const answer = { code: undefined, error: 'access_denied', error_description: 'Go away' };
    await expectFaultRefused({ answer }, 'sign_in_refused');
    expect(posthorn.gateway.output()).toContain('Go away');
  });

  it('has a code that the issuer does not know', async () => {
    await expectFaultRefused({ answer: { code: 'made-up' } }, 'sign_in_invalid');
  });

  it('has a state of nobody, or one that only begins as ours', async () => {
    const browser = posthorn.browser();
    const back = new URL(posthorn.issuer.signIn(await browser.begin(), ADA));
    const state = back.searchParams.get('state') ?? '';
    back.searchParams.set('state', 'made-up-state');
    await expectRefused(browser, await browser.comeBack(back.href), 'sign_in_expired');
    back.searchParams.set('state', `${state.slice(0, 8)}${'x'.repeat(state.length - 8)}`);
    await expectRefused(browser, await browser.comeBack(back.href), 'sign_in_invalid');
    back.searchParams.delete('state');
    await expectRefused(browser, await browser.comeBack(back.href), 'sign_in_expired');
  });

  it('repeats a state, with the cookie of before or without it', async () => {
    const browser = posthorn.browser();
    const back = posthorn.issuer.signIn(await browser.begin(), ADA);
    const cookies = new Map(browser.cookies);
    expect(await browser.comeBack(back)).toBe('/dashboard/');
    browser.cookies.clear();
    await expectRefused(browser, await browser.comeBack(back), 'sign_in_expired');
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    await expectRefused(browser, await browser.comeBack(back), 'sign_in_invalid');
  });

  it('was begun in another browser', async () => {
    const [victim, attacker] = [posthorn.browser(), posthorn.browser()];
    const back = posthorn.issuer.signIn(await attacker.begin(), ADA);
    await expectRefused(victim, await victim.comeBack(back), 'sign_in_expired');
    await victim.begin();
    await expectRefused(victim, await victim.comeBack(back), 'sign_in_expired');
  });

  it('was begun by a form of another site', async () => {
    const response = await fetch(`${posthorn.baseUrl}/dashboard/api/oidc`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: '{}',
    });
    expect([response.status, response.headers.getSetCookie()]).toEqual([415, []]);
  });

  it('has a cookie that was changed', async () => {
    const browser = posthorn.browser();
    const back = posthorn.issuer.signIn(await browser.begin(), ADA);
    const [[name, value] = ['', '']] = browser.cookies;
    browser.cookies.set(name, `${value.slice(0, -2)}xx`);
    await expectRefused(browser, await browser.comeBack(back), 'sign_in_expired');
  });

  it.each([
    'https://evil.example/dashboard/',
    '//evil.example/dashboard/',
    '/\\evil.example/dashboard/',
    '/dashboard/../../evil.example',
    '/dashboard//evil.example',
    '/dashboard/%2e%2e/%2e%2e/evil',
    '/dashboard/\tevil',
    'javascript:alert(1)',
    '/dashboard/portal/comp_1',
    `/dashboard/${'x'.repeat(1_000)}`,
  ])('leads to the first page in place of %j', async (to) => {
    expect(await posthorn.browser().signIn(ADA, { to })).toBe('/dashboard/');
  });

  it('has no role, and shows the person their groups', async () => {
    const browser = posthorn.browser();
    const claims = { groups: ['refusals-sales', 'refusals-all'] };
    await expectRefused(browser, await browser.signIn({ sub: 'nobody', claims }), 'no_role');
    const offers = dataOf(await browser.api.get('/dashboard/api/sign-in'));
    expect(offers).toEqual({
      oidc: { issuer: posthorn.issuer.url },
      apiKey: true,
      refused: { code: 'no_role', groups: ['refusals-sales', 'refusals-all'] },
    });
    const people = dataOf<object[]>(await posthorn.api.get('/api/v1/people'));
    expect(people).not.toContainEqual(expect.objectContaining({ name: 'nobody' }));
  });

  it.each<[string, object]>([
    ['names another place for them', { _claim_names: { groups: 'src1' } }],
    ['says that there are some', { hasgroups: true }],
    ['has more than 1,000', { groups: Array.from({ length: 1_001 }, (_, n) => `g${n}`) }],
  ])('has no whole list of groups: the token %s', async (_what, claims) => {
    const browser = posthorn.browser();
    const path = await browser.signIn({ sub: 'entra', claims: { ...claims } });
    await expectRefused(browser, path, 'groups_unknown');
  });

  it('has the UserInfo of another person', async () => {
    const browser = posthorn.browser();
    const userInfo = { groups: [group('platform')] };
    const login = { sub: 'ada', userInfo, faults: { userInfoSubject: 'eve' } };
    await expectRefused(browser, await browser.signIn(login), 'sign_in_invalid');
    expect(await browser.signIn({ sub: 'ada', userInfo })).toBe('/dashboard/');
  });

  it('is of a disabled person', async () => {
    const browser = posthorn.browser();
    const login = { sub: 'disabled', claims: { groups: [group('platform')] } };
    expect(await browser.signIn(login)).toBe('/dashboard/');
    const { person } = dataOf<{ person: { id: string } }>(await browser.api.get(SESSION));
    dataOf(await posthorn.api.put(`/api/v1/people/${person.id}`, { disabled: true }));
    const next = posthorn.browser();
    await expectRefused(next, await next.signIn(login), 'person_disabled');
    dataOf(await posthorn.api.put(`/api/v1/people/${person.id}`, { disabled: false }));
    expect(await browser.signIn(login)).toBe('/dashboard/');
  });

  describe('An invitation', () => {
    interface Made {
      id: string;
      token: string;
    }
    async function invite(role = 'viewer'): Promise<Made> {
      const made = await posthorn.api.post('/api/v1/invitations', { role, name: 'Guest' });
      const { id, url } = dataOf<{ id: string; url: string }>(made, 201);
      const [page, token = ''] = url.split('#');
      expect(page).toBe(`${posthorn.baseUrl}/dashboard/invitation`);
      return { id, token };
    }

    it('opens once, also for two who begin at the same time', async () => {
      const { token } = await invite('support');
      const [one, other] = [posthorn.browser(), posthorn.browser()];
      const backOfOne = posthorn.issuer.signIn(await one.begin({ invitation: token }), {
        sub: 'guest-1',
      });
      const backOfOther = posthorn.issuer.signIn(await other.begin({ invitation: token }), {
        sub: 'guest-2',
      });
      expect(await one.comeBack(backOfOne)).toBe('/dashboard/');
      expect(dataOf(await one.api.get(SESSION))).toMatchObject({ person: { role: 'support' } });
      await expectRefused(other, await other.comeBack(backOfOther), 'link_used');
      const again = await other.api.post('/dashboard/api/oidc', { invitation: token });
      expectFailure(again, 410, 'link_used');
      expect(await one.signIn({ sub: 'guest-1' })).toBe('/dashboard/');
    });

    it('is for somebody whose list of groups is not complete, too', async () => {
      const { token } = await invite();
      const browser = posthorn.browser();
      const login = { sub: 'guest-3', claims: { hasgroups: true } };
      expect(await browser.signIn(login, { invitation: token })).toBe('/dashboard/');
    });

    it('opens no more when it is revoked, before the way to the issuer and after it', async () => {
      const { id, token } = await invite();
      const browser = posthorn.browser();
      const back = posthorn.issuer.signIn(await browser.begin({ invitation: token }), {
        sub: 'guest-4',
      });
      expect((await posthorn.api.delete(`/api/v1/invitations/${id}`)).status).toBe(200);
      await expectRefused(browser, await browser.comeBack(back), 'link_revoked');
      const again = await browser.api.post('/dashboard/api/oidc', { invitation: token });
      expectFailure(again, 410, 'link_revoked');
      const unknown = await browser.api.post('/dashboard/api/oidc', { invitation: 'made-up' });
      expectFailure(unknown, 404, 'link_unknown');
    });
  });

  it('is of somebody whose only company is suspended', async () => {
    const { api: owner, companyId } = await createCompany(posthorn, 'Suspended');
    const groups = [{ group: group('suspended'), role: 'viewer' }];
    dataOf(await owner.put('/api/v1/people-settings', { groups }));
    const login = { sub: 'suspended', claims: { groups: [group('suspended'), group('platform')] } };
    const browser = posthorn.browser();
    expect(await browser.signIn(login, { companyId })).toBe('/dashboard/');
    await runProgram(ADMIN, ['company', 'suspend', companyId], posthorn.env);
    await eventually('the suspension', async () => (await browser.api.get(SESSION)).status === 403);
    const alone = { sub: 'suspended', claims: { groups: [group('suspended')] } };
    const next = posthorn.browser();
    await expectRefused(next, await next.signIn(alone), 'company_suspended');
    expect(await next.signIn(login)).toBe('/dashboard/');
    expect(dataOf(await next.api.get(SESSION))).toMatchObject({
      company: { id: posthorn.companyId },
      companies: [{ id: posthorn.companyId }],
    });
    const entered = await next.api.post(SESSION, { companyId });
    expectFailure(entered, 403, 'company_suspended');
  });

  it('finds the issuer away: keys work, and nothing waits for longer than 10 s', async () => {
    const { issuer } = posthorn;
    issuer.behave('hanging');
    // Neither the start nor the readiness of a gateway waits for the issuer.
    const another = await posthorn.startAnother();
    const browser = another.browser();
    for (const state of ['broken', 'hanging'] as const) {
      issuer.behave(state);
      const startedMs = performance.now();
      const begun = await browser.api.post('/dashboard/api/oidc', {});
      expectFailure(begun, 503, 'sign_in_unavailable');
      expect(performance.now() - startedMs).toBeLessThan(10_000);
    }
    const keyed = createApiClient(another.baseUrl, posthorn.apiKey);
    dataOf(await keyed.get('/api/v1/me'));
    dataOf(await keyed.post(SESSION, { apiKey: posthorn.apiKey }));
    issuer.behave('well');
    const back = issuer.signIn(await browser.begin(), ADA);
    issuer.behave('hanging');
    const startedMs = performance.now();
    await expectRefused(browser, await browser.comeBack(back), 'sign_in_unavailable');
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    issuer.behave('well');
    expect(await browser.signIn(ADA)).toBe('/dashboard/');
  });

  it('leaves no secret, code, token and claim in a log [security]', () => {
    expect(posthorn.issuer.secrets.length).toBeGreaterThan(50);
    expect(posthorn.leaks()).toEqual([]);
  });
});
