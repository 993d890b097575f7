import { beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiClient, createApiClient } from '../../../support/api/api-client.ts';
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
import { useCompany } from '../../../support/process/use-company.ts';
import { eventually } from '../../../support/time/eventually.ts';

describe('Portal links', () => {
  const DAY_MS = 86_400_000;
  const WEEK = { capabilities: ['view' as const], expiresInSeconds: 7 * 86_400 };

  interface ListedLink {
    id: string;
    appId: string;
    status: string;
    expiresAt: string;
    openedAt: string | null;
  }

  const { posthorn } = useCompany('contract');
  let appId: string;

  async function newApp(): Promise<string> {
    return (await createResources(posthorn.api).app()).id;
  }

  async function listed(query: string, api = posthorn.api): Promise<ListedLink[]> {
    return dataOf<ListedLink[]>(await api.get(`/api/v1/portal-links${query}`));
  }

  const statusOf = async (link: MadeLink): Promise<string | undefined> =>
    (await listed(`?appId=${appId}`)).find(({ id }) => id === link.id)?.status;

  interface ShownKey {
    id: string;
    key: string;
    name: string;
    scopes: string[];
    appId: string | null;
    ofLink: boolean;
  }

  const keysNow = async (): Promise<ShownKey[]> =>
    dataOf<ShownKey[]>(await posthorn.api.get('/api/v1/api-keys'));

  const makeKey = async (fields: object): Promise<ShownKey> =>
    dataOf<ShownKey>(
      await posthorn.api.post('/api/v1/api-keys', { name: 'Spare', ...fields }),
      201,
    );

  describe('The list of portal links', () => {
    it('contains the valid links of an app, the last to expire first', async () => {
      appId = await newApp();
      const capabilities = ['view' as const, 'resend' as const];
      const [hour, week, revoked] = [
        await makePortalLink(posthorn.api, appId, { capabilities, expiresInSeconds: 3_600 }),
        await makePortalLink(posthorn.api, appId, WEEK),
        await makePortalLink(posthorn.api, appId, WEEK),
      ];
      const other = await makePortalLink(posthorn.api, await newApp(), WEEK);
      dataOf(await posthorn.api.delete(`/api/v1/portal-links/${revoked.id}`));
      await openLink(posthorn.baseUrl, hour);
      const links = await listed(`?appId=${appId}`);
      expect(links.map(({ id }) => id)).toEqual([week.id, hour.id]);
      expect(links[1]).toEqual({
        id: anId('plnk'),
        appId,
        apiKeyId: anId('key'),
        status: 'opened',
        capabilities,
        createdAt: aTime,
        openedAt: aTime,
        expiresAt: aTime,
      });
      expect(links[0]).toMatchObject({ status: 'unopened', openedAt: null });
      expect(JSON.stringify(links)).not.toContain(week.token);
      expect(await listed(`?appId=${appId}&limit=1&skip=1`)).toEqual([links[1]]);
      expect((await listed('')).map(({ id }) => id).sort()).toEqual(
        [week.id, hour.id, other.id].sort(),
      );
      expectNotFound(await posthorn.api.get('/api/v1/portal-links?appId=app_unknown'));
      expectInvalid(await posthorn.api.get('/api/v1/portal-links?limit=0'), 'limit');
    });

    it('contains only links of its app for a key of one app', async () => {
      appId = await newApp();
      const own = await makePortalLink(posthorn.api, appId, WEEK);
      const otherId = await newApp();
      await makePortalLink(posthorn.api, otherId, WEEK);
      const { id, key } = await makeKey({ appId });
      const api = createApiClient(posthorn.baseUrl, key);
      expect((await listed('', api)).map((link) => link.id)).toEqual([own.id]);
      expectNotFound(await api.get(`/api/v1/portal-links?appId=${otherId}`));
      dataOf(await posthorn.api.delete(`/api/v1/api-keys/${id}`));
    });

    it('marks links that ended with their API key', async () => {
      appId = await newApp();
      const { id, key } = await makeKey({});
      const link = await makePortalLink(createApiClient(posthorn.baseUrl, key), appId, WEEK);
      expect(await listed(`?appId=${appId}`)).toMatchObject([{ status: 'unopened', apiKeyId: id }]);
      dataOf(await posthorn.api.delete(`/api/v1/api-keys/${id}`));
      expect(await statusOf(link)).toBe('ended');
    });

    it('shows the end of the API key when that comes first', async () => {
      appId = await newApp();
      const { id, key } = await makeKey({});
      await makePortalLink(createApiClient(posthorn.baseUrl, key), appId, WEEK);
      const rotated = await posthorn.api.post(`/api/v1/api-keys/${id}/rotate`, {
        graceSeconds: 60,
      });
      dataOf(rotated, 201);
      const [shown] = await listed(`?appId=${appId}`);
      expect(Date.parse(shown?.expiresAt ?? '') - Date.now()).toBeLessThan(61_000);
    });

    it('marks links that ended with their app; they are refused as revoked, and not used up', async () => {
      const deletedId = await newApp();
      const link = await makePortalLink(posthorn.api, deletedId, WEEK);
      const { companyId: companyid, baseUrl } = posthorn;
      dataOf(await posthorn.api.delete(`/api/v1/apps/${deletedId}`, { companyid }));
      const nobody = createApiClient(baseUrl, null);
      for (let n = 0; n < 2; n += 1) {
        const opened = await nobody.post(PORTAL_SESSION, { link: link.token });
        expectFailure(opened, 410, 'link_revoked');
      }
      const shown = (await listed('')).find(({ id }) => id === link.id);
      expect(shown).toMatchObject({ status: 'ended', openedAt: null });
      const events = await readAuditEvents(posthorn.api, { actor: link.id });
      expect(events).toEqual([]);
    });
  });

  describe('A portal link that was made in a session which a sign-in link began', () => {
    let session: ApiClient;
    let link: MadeLink;

    beforeAll(async () => {
      appId = await newApp();
      const nobody = createApiClient(posthorn.baseUrl, null);
      const answer = await nobody.post(SESSION, { link: await makeSignInLink(posthorn) });
      session = createSessionClient(posthorn.baseUrl, cookieOf(answer));
      link = await makePortalLink(session, appId, { ...WEEK, capabilities: ['view', 'manage'] });
    });

    const ownKey = async (): Promise<ShownKey | undefined> =>
      (await keysNow()).find(({ name }) => name === `Portal link ${link.id}`);

    const lastsMs = async (): Promise<number> => {
      const [shown] = await listed(`?appId=${appId}`);
      return Date.parse(shown?.expiresAt ?? '') - Date.now();
    };

    it('lasts as long as requested', async () => {
      expect(await lastsMs()).toBeGreaterThan(6.9 * DAY_MS);
    });

    it('has an API key of its own, for its app and its capabilities, which cannot be rotated', async () => {
      const own = await ownKey();
      const scopes = ['read', 'messages:write', 'webhooks:write'];
      expect(own).toMatchObject({ scopes: expect.arrayContaining(scopes), appId, ofLink: true });
      expect(own?.scopes).toHaveLength(scopes.length);
      const rotated = await posthorn.api.post(`/api/v1/api-keys/${own?.id ?? ''}/rotate`, {});
      expectFailure(rotated, 409, 'key_of_link');
    });

    it('opens after the session has ended, and its visit goes on', async () => {
      dataOf(await session.delete(SESSION));
      await eventually('the end', async () => (await session.get('/webhooks')).status === 401);
      const cookie = await openLink(posthorn.baseUrl, link);
      const visitor = createSessionClient(posthorn.baseUrl, cookie, 'portal');
      dataOf(await visitor.get('/webhooks'));
      expect(await statusOf(link)).toBe('opened');
      expect(await lastsMs()).toBeGreaterThan(6.9 * DAY_MS);
    });

    it('goes with its API key when its visitor signs out', async () => {
      const nobody = createApiClient(posthorn.baseUrl, null);
      const answer = await nobody.post(SESSION, { link: await makeSignInLink(posthorn) });
      const again = createSessionClient(posthorn.baseUrl, cookieOf(answer));
      const other = await makePortalLink(again, appId, WEEK);
      const cookie = await openLink(posthorn.baseUrl, other);
      dataOf(await createSessionClient(posthorn.baseUrl, cookie, 'portal').delete(PORTAL_SESSION));
      const names = (await keysNow()).map(({ name }) => name);
      expect(names).not.toContain(`Portal link ${other.id}`);
    });

    it('goes with its API key when it is revoked', async () => {
      dataOf(await posthorn.api.delete(`/api/v1/portal-links/${link.id}`));
      expect(await listed(`?appId=${appId}`)).toEqual([]);
      expect(await ownKey()).toBeUndefined();
    });
  });
});

describe('The settings of the portal', () => {
  const SETTINGS = '/api/v1/portal-settings';

  const { posthorn } = useCompany('contract');

  it('list the origins that may frame it', async () => {
    expect(dataOf(await posthorn.api.get(SETTINGS))).toEqual({ origins: [] });
    const origins = ['https://app.example.com', 'http://localhost:3000'];
    expect(dataOf(await posthorn.api.put(SETTINGS, { origins }))).toEqual({ origins });
    expect(dataOf(await posthorn.api.put(SETTINGS, {}))).toEqual({ origins });
    expect(dataOf(await posthorn.api.get(SETTINGS))).toEqual({ origins });
    const { baseUrl, companyId } = posthorn;
    await eventually('the header', async () => {
      const page = await fetch(`${baseUrl}/dashboard/portal/${companyId}`);
      const policy = page.headers.get('content-security-policy') ?? '';
      return policy.endsWith(`frame-ancestors ${origins.join(' ')}`);
    });
    const page = await fetch(`${baseUrl}/dashboard`);
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  it('refuse what is not an origin only', async () => {
    const origins = ["https://a.example; script-src 'unsafe-inline'"];
    expectInvalid(await posthorn.api.put(SETTINGS, { origins }), 'origins.0');
  });

  it('list the origins that a logo may have', async () => {
    const { id } = await createResources(posthorn.api).app();
    const askLink = (logoUrl: string) => {
      const body = { expiresInSeconds: 60, capabilities: ['view'], theme: { logoUrl } };
      return posthorn.api.post(`/api/v1/apps/${id}/portal-links`, body);
    };
    const far = 'https://cdn.example.com:65535';
    const origins = ['https://cdn.example.com:443', far];
    dataOf(await posthorn.api.put(SETTINGS, { origins }));
    for (const logo of ['https://cdn.example.com/a.png', `${far}/a.png`, DATA_LOGO]) {
      dataOf(await askLink(logo), 201);
    }
    const refused = await askLink('https://other.example.com/a.png');
    expectInvalid(refused, 'theme.logoUrl');
    expect(refused.body.message).toContain('origins of the portal settings');
    dataOf(await posthorn.api.put(SETTINGS, { origins: [] }));
    expectInvalid(await askLink('https://cdn.example.com/a.png'), 'theme.logoUrl');
  });

  const DATA_LOGO = 'data:image/svg+xml;base64,PHN2Zy8+';
});
