import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, type Browser, signIn } from '../../support/browser/browser.ts';
import { takePicture } from '../../support/browser/check-page.ts';
import { startFramingPage, type FramingPage } from '../../support/browser/framing-page.ts';
import { startFrontProxy, type FrontProxy } from '../../support/browser/front-proxy.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';

const MOST_BYTES = 300_000;

let posthorn: OwnGateway;

beforeAll(async () => {
  posthorn = await joinWithGateway('contract', { TRUSTED_PROXIES: '1' });
}, 120_000);

afterAll(() => posthorn.stop());

describe('The dashboard behind a path prefix', () => {
  let proxy: FrontProxy;
  let browser: Browser;

  beforeAll(async () => {
    proxy = await startFrontProxy(posthorn.baseUrl, { prefix: '/hooks/eu' });
    browser = await startBrowser(new URL(proxy.url).origin);
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await proxy.close();
  });

  it('signs in, and opens the address of a page', async () => {
    const { page } = browser;
    await signIn(page, { ...posthorn, baseUrl: proxy.url });
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.waitForURL(`${proxy.url}/dashboard/api-keys`);
    await page.reload();
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
  });

  it('loads less than 300 kB for the first page', async () => {
    const { page } = browser;
    await page.goto(`${proxy.url}/dashboard/`);
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    const bytes = await page.evaluate<number>(
      `performance.getEntriesByType('resource').reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
    );
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  it('sends requests to its own origin only, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});

describe('The dashboard and the portal over https', () => {
  let proxy: FrontProxy;
  let browser: Browser;
  let platform: FramingPage;

  beforeAll(async () => {
    proxy = await startFrontProxy(posthorn.baseUrl, { isSecure: true });
    browser = await startBrowser(proxy.url);
    platform = await startFramingPage();
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await platform.close();
    await proxy.close();
  });

  async function cookieNamed(name: string) {
    const cookies = await browser.page.context().cookies();
    return cookies.find((cookie) => cookie.name === name);
  }

  it('keep a session in a cookie of this host alone, which no script and no other site can use', async () => {
    const { page } = browser;
    await signIn(page, { ...posthorn, baseUrl: proxy.url });
    await page.reload();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(await cookieNamed('__Host-posthorn_session')).toMatchObject({
      secure: true,
      httpOnly: true,
      sameSite: 'Strict',
      path: '/',
    });
    expect(browser.faults()).toEqual([]);
  });

  it('show the portal in a frame of another site, from page to page', async () => {
    const { page } = browser;
    const { appId, webhookId } = await posthorn.api.createTarget('http://127.0.0.1:1/framed');
    // Two sites: the frame is on 127.0.0.1.
    const { name: origin } = platform.origins;
    dataOf(await posthorn.api.put('/api/v1/portal-settings', { origins: [origin] }));
    const asked = { expiresInSeconds: 600, capabilities: ['view'] };
    const made = await posthorn.api.post(`/api/v1/apps/${appId}/portal-links`, asked);
    const { url } = dataOf<{ url: string }>(made, 201);
    platform.show(url.replace(posthorn.baseUrl, proxy.url));
    await page.goto(origin);
    const frame = page.frameLocator('iframe');
    await frame.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    await frame.getByRole('link', { name: 'http://127.0.0.1:1/framed' }).click();
    await frame.getByText(webhookId).waitFor();
    await takePicture(page, 'portal-in-a-frame-of-another-site');
    expect(await cookieNamed('__Host-posthorn_portal')).toMatchObject({
      secure: true,
      httpOnly: true,
      sameSite: 'None',
    });
  });

  it('do not send the visit of a frame to the portal outside of it', async () => {
    const { page } = browser;
    await page.goto(`${proxy.url}/dashboard/portal/${posthorn.companyId}/webhooks`);
    await page.getByRole('heading', { name: 'Your visit has ended', level: 1 }).waitFor();
  });
});
