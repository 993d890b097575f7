import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startBrowser, type Browser } from '../../support/browser/browser.ts';
import { findBarriers } from '../../support/browser/check-page.ts';
import { signIn } from '../../support/browser/sign-in.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';

const NOWHERE = 'http://127.0.0.1:9';

describe('The form of a webhook', () => {
  let posthorn: Posthorn;
  let browser: Browser;
  let webhookId: string;

  beforeAll(async () => {
    posthorn = await startPosthorn();
    browser = await startBrowser(posthorn.baseUrl);
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await posthorn.stop();
  }, 60_000);

  beforeEach(async () => {
    ({ webhookId } = await posthorn.api.createTarget(`${NOWHERE}/own`));
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
    await browser.page.goto(`${posthorn.baseUrl}/dashboard/webhooks/${webhookId}?tab=settings`);
    await field('Name').waitFor();
  });

  const field = (name: string) => browser.page.getByLabel(name, { exact: true });

  const focused = (): Promise<string> =>
    browser.page.evaluate<string>(
      `document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? ''`,
    );

  it('shows and hides a typed secret from the keyboard', async () => {
    const { page } = browser;
    const secret = page.getByLabel(/^Signing secret/);
    await secret.fill('typed');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Show or hide what is typed as Signing secret');
    await page.keyboard.press('Enter');
    expect(await secret.getAttribute('type')).toBe('text');
    await page.keyboard.press('Space');
    expect(await secret.getAttribute('type')).toBe('password');
    expect(await findBarriers(page)).toEqual([]);
  });

  it('shows no field of one webhook under the title of another', async () => {
    const { page } = browser;
    const url = `${NOWHERE}/other`;
    const { webhookId: other } = await posthorn.api.createTarget(url);
    await page.getByLabel('Find anything by its id').fill(other);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: url, level: 1 }).waitFor();
    await page.getByRole('tab', { name: 'Settings' }).click();
    expect(await page.getByLabel(/^URL/).inputValue()).toBe(url);
    await page.evaluate('history.go(-2)');
    await page.getByRole('heading', { name: `${NOWHERE}/own`, level: 1 }).waitFor();
    expect(await page.getByLabel(/^URL/).inputValue()).toBe(`${NOWHERE}/own`);
  });

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
