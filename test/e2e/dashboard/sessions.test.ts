import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, type Browser, signIn } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { makeSignInLink } from '../../support/process/companies.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { eventually } from '../../support/time/eventually.ts';

interface MadeKey {
  id: string;
  key: string;
}

/** Longer than the stream takes to end, and to be asked for again. */
const REVOCATION_TIMEOUT_MS = 25_000;

const ENDED = 'Your session has ended: its API key was revoked or has expired';

describe('A session of the dashboard', () => {
  let posthorn: Posthorn;
  let browser: Browser;
  let appId: string;

  beforeAll(async () => {
    posthorn = await startPosthorn();
    browser = await startBrowser(posthorn.baseUrl);
    ({ appId } = await posthorn.api.createTarget('http://127.0.0.1:9/nowhere'));
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await posthorn.stop();
  }, 60_000);

  beforeEach(async () => {
    await browser.page.context().clearCookies();
  });

  async function makeKey(...scopes: string[]): Promise<MadeKey> {
    return dataOf(await posthorn.api.post('/api/v1/api-keys', { name: 'Own', scopes }), 201);
  }

  async function makeLink(...capabilities: string[]): Promise<{ id: string; url: string }> {
    const body = { expiresInSeconds: 600, capabilities };
    return dataOf(await posthorn.api.post(`/api/v1/apps/${appId}/portal-links`, body), 201);
  }

  async function open(path: string): Promise<void> {
    await browser.page.goto(`${posthorn.baseUrl}/dashboard/${path}`);
  }

  const heading = async (name: string, timeout?: number): Promise<void> =>
    browser.page
      .getByRole('heading', { name, level: 1 })
      .waitFor(timeout === undefined ? {} : { timeout });

  const untilLive = (): Promise<void> => browser.page.getByText('Live: new attempts').waitFor();

  it('ends on a page that asks nothing by itself, soon after its key was revoked', async () => {
    const { id, key } = await makeKey('read');
    await signIn(browser.page, { ...posthorn, apiKey: key });
    await open('projects');
    await heading('Projects and apps');
    await untilLive();
    await posthorn.api.delete(`/api/v1/api-keys/${id}`);
    await heading('Sign in to Posthorn', REVOCATION_TIMEOUT_MS);
    await browser.page.getByRole('status').getByText(ENDED).waitFor();
    expect(await findBarriers(browser.page)).toEqual([]);
  }, 60_000);

  it('has not ended for whoever gives a wrong key, or signs out', async () => {
    const { page } = browser;
    await open('');
    await page.getByLabel(/^API key/).fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Could not sign in').waitFor();
    expect(await page.getByText(ENDED).count()).toBe(0);
    await signIn(page, posthorn);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading('Sign in to Posthorn');
    expect(await page.getByText(ENDED).count()).toBe(0);
  });

  it('ends in the poll of a list, where there is no stream', async () => {
    const { page } = browser;
    const { id, key } = await makeKey('read');
    await page.route('**/api/v1/live', (route) => route.fulfill({ status: 429, json: null }));
    await signIn(page, { ...posthorn, apiKey: key });
    await open('messages');
    await heading('Messages');
    await page.getByText('No live updates').waitFor();
    await posthorn.api.delete(`/api/v1/api-keys/${id}`);
    await heading('Sign in to Posthorn', REVOCATION_TIMEOUT_MS);
    await page.unroute('**/api/v1/live');
  }, 60_000);

  it('of the portal ends soon after its link was revoked', async () => {
    const { id, url } = await makeLink('view');
    await browser.page.goto(url);
    await heading('Webhooks');
    await untilLive();
    await posthorn.api.delete(`/api/v1/portal-links/${id}`);
    await heading('Your visit has ended', REVOCATION_TIMEOUT_MS);
  }, 60_000);

  it('says of a page that its key does not open which scope is missing', async () => {
    const { page } = browser;
    const { key } = await makeKey('read');
    await signIn(page, { ...posthorn, apiKey: key });
    for (const [path, scope] of Object.entries(NEEDED_SCOPES)) {
      await open(path);
      await heading('This page is not open to you');
      await page.getByText(`This API key does not have the scope ${scope}.`).waitFor();
      expect(await page.locator('main form').count()).toBe(0);
    }
  });

  it('of the portal has the pages of the portal only', async () => {
    const { page } = browser;
    await page.goto((await makeLink('view')).url);
    await heading('Webhooks');
    const portal = page.url().replace(/\/webhooks$/, '');
    for (const path of ['start', 'projects', 'api-keys', 'audit', 'messages/new', 'nothing']) {
      await page.goto(`${portal}/${path}`);
      await heading('There is no such page');
    }
    await page.goto(`${portal}/webhooks/new`);
    await page.getByText('Your link to the portal does not include “manage”.').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'webhooks' }).click();
    await heading('Webhooks');
  });

  it('goes on after a sign-in link that does not open, which says why', async () => {
    const { page } = browser;
    const link = `${posthorn.baseUrl}/dashboard/sign-in#${await makeSignInLink(posthorn)}`;
    await page.goto(link);
    await heading('Overview');
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByText('This link was used already.').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'sign-in-link-refused');
    await page.getByRole('button', { name: 'Go on as Test' }).click();
    await heading('Overview');
  });

  it('is not offered with a link that does not open where there is none', async () => {
    const { page } = browser;
    await page.goto('about:blank');
    await open(`sign-in#${'x'.repeat(43)}`);
    await page.getByText('There is no such link.').waitFor();
    await page.getByText('An operator makes a new one').waitFor();
    expect(await page.getByRole('button', { name: /^Go on as/ }).count()).toBe(0);
  });

  it('keeps the focus of the keyboard when what it revoked goes, and names it before', async () => {
    const { page } = browser;
    await makeKey('read');
    const { id } = await makeLink('view');
    await signIn(page, posthorn);
    await open('api-keys');
    await revoke('Own', 'Revoke API key “Own”?');
    await expectFocusOn('API keys');
    await open(`apps/${appId}`);
    await revoke(id, `Revoke portal link “${id}”?`);
    await expectFocusOn('Portal links');
  });

  async function revoke(name: string, question: string): Promise<void> {
    const { page } = browser;
    const button = page.getByRole('button', { name: `Revoke ${name}`, exact: true }).first();
    await button.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: question });
    await dialog.getByRole('button', { name: 'Revoke' }).focus();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
  }

  async function expectFocusOn(name: string): Promise<void> {
    await eventually(`the focus on “${name}”`, async () => {
      const focused = await browser.page.evaluate('document.activeElement?.textContent');
      return focused === name;
    });
  }

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});

const NEEDED_SCOPES = {
  'messages/new': 'messages:write',
  'webhooks/new': 'webhooks:write',
  audit: 'admin',
};
