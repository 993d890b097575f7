import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBrowser, type Browser, signIn } from '../../support/browser/browser.ts';
import { startFrontProxy, type FrontProxy } from '../../support/browser/front-proxy.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';

const MOST_BYTES = 300_000;

describe('The dashboard behind a path prefix', () => {
  let posthorn: Posthorn;
  let proxy: FrontProxy;
  let browser: Browser;

  beforeAll(async () => {
    posthorn = await startPosthorn();
    proxy = await startFrontProxy(posthorn.baseUrl, { prefix: '/hooks/eu' });
    browser = await startBrowser(new URL(proxy.url).origin);
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await proxy.close();
    await posthorn.stop();
  }, 60_000);

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

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
