import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, type Browser, signIn } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { eventually } from '../../support/time/eventually.ts';

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

  it('keeps what somebody else changed since it was filled, and offers to show it', async () => {
    const { page } = browser;
    const other = { name: 'Of somebody else', eventTypes: ['order.paid'] };
    dataOf(await posthorn.api.put(`/api/v1/webhooks/${webhookId}`, other));
    const notice = page.getByText('Somebody changed this webhook');
    await eventually('the notice', async () => {
      await reconnect();
      return notice.isVisible();
    });
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'webhook-changed-meanwhile');
    await field('Name').fill('Typed and given up');
    await page.getByRole('button', { name: 'Reload the fields' }).click();
    await notice.waitFor({ state: 'detached' });
    expect(await field('Name').inputValue()).toBe('Of somebody else');
    expect(await focused()).toBe('The fields show what is stored now.');
  });

  it('sends only what was typed, even when the webhook changed since', async () => {
    const { page } = browser;
    dataOf(await posthorn.api.put(`/api/v1/webhooks/${webhookId}`, { name: 'Of somebody else' }));
    await eventually('the notice', async () => {
      await reconnect();
      return page.getByText('Somebody changed this webhook').isVisible();
    });
    await field('Most attempts per second').fill('7');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    const answer = await posthorn.api.get(`/api/v1/webhooks/${webhookId}`);
    expect(dataOf(answer)).toMatchObject({ name: 'Of somebody else', rateLimitPerSecond: 7 });
    expect(await field('Name').inputValue()).toBe('Of somebody else');
    expect(await page.getByText('Somebody changed this webhook').count()).toBe(0);
  });

  /** Lets the page load again what is older than some seconds, as after a gap in the network. */
  async function reconnect(): Promise<void> {
    for (const event of ['offline', 'online']) {
      await browser.page.evaluate(`window.dispatchEvent(new Event('${event}'))`);
    }
  }

  it('keeps the focus of the keyboard when Enter saves', async () => {
    const { page } = browser;
    for (const name of ['First', 'Second']) {
      await field('Name').fill(name);
      await page.keyboard.press('Enter');
      await eventually('the focus on “Saved.”', async () => (await focused()).startsWith('Saved.'));
      expect(await field('Name').inputValue()).toBe(name);
    }
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
