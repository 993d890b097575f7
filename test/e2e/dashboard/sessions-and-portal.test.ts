import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { signIn, startBrowser, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { startFramingPage, type FramingPage } from '../../support/browser/framing-page.ts';
import { makeSignInLink } from '../../support/process/companies.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { selfSigned } from '../../support/receivers/self-signed.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Target {
  appId: string;
  webhookId: string;
  url: string;
}

const { posthorn } = useCompany('contract-after-retries');
let endpoint: BusyEndpoint;
let browser: Browser;
let own: Target;
let other: Target;

beforeAll(async () => {
  endpoint = await startBusyEndpoint();
  browser = await startBrowser(posthorn.baseUrl);
  own = await createTarget('own');
  other = await createTarget('other');
}, 120_000);

beforeEach(async () => {
  await browser.page.context().clearCookies();
});

afterAll(async () => {
  await browser.close();
  await endpoint.close();
}, 60_000);

async function createTarget(path: string): Promise<Target> {
  const url = `${endpoint.url}/${path}`;
  return { url, ...(await posthorn.api.createTarget(url)) };
}

async function createLink(
  capabilities: string[],
  more: object = {},
): Promise<{ id: string; url: string }> {
  const body = { expiresInSeconds: 600, capabilities, ...more };
  return dataOf(await posthorn.api.post(`/api/v1/apps/${own.appId}/portal-links`, body), 201);
}

const makeLink = async (capabilities: string[], more?: object): Promise<string> =>
  (await createLink(capabilities, more)).url;

const heading = (name: string): Promise<void> =>
  browser.page.getByRole('heading', { name, level: 1 }).waitFor();

interface MadeKey {
  id: string;
  key: string;
}

const NEEDED_SCOPES = {
  'messages/new': 'messages:write',
  'webhooks/new': 'webhooks:write',
  audit: 'admin',
};

const ENDED = 'Your session has ended: its API key was revoked or has expired';

describe('A session of the dashboard', () => {
  async function makeKey(...scopes: string[]): Promise<MadeKey> {
    return dataOf(await posthorn.api.post('/api/v1/api-keys', { name: 'Own', scopes }), 201);
  }

  async function open(path: string): Promise<void> {
    await browser.page.goto(`${posthorn.baseUrl}/dashboard/${path}`);
  }

  const untilLive = (): Promise<void> => browser.page.getByText('Live: new attempts').waitFor();

  it('ends soon after its key was revoked, on a page that sends no requests by itself', async () => {
    const { id, key } = await makeKey('read');
    await signIn(browser.page, { ...posthorn, apiKey: key });
    await open('projects');
    await heading('Projects and apps');
    await untilLive();
    await posthorn.api.delete(`/api/v1/api-keys/${id}`);
    await heading('Sign in to Posthorn');
    await browser.page.getByRole('status').getByText(ENDED).waitFor();
    expect(await findBarriers(browser.page)).toEqual([]);
  });

  it('is not reported as ended after a wrong key or a sign-out', async () => {
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
    await heading('Sign in to Posthorn');
    await page.unroute('**/api/v1/live');
  });

  it('of the portal ends soon after its link was revoked', async () => {
    const { id, url } = await createLink(['view']);
    await browser.page.goto(url);
    await heading('Webhooks');
    await untilLive();
    await posthorn.api.delete(`/api/v1/portal-links/${id}`);
    await heading('Your visit has ended');
  });

  it('shows the missing scope on a page that its key does not open', async () => {
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
    await page.goto((await createLink(['view'])).url);
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

  it('goes on after a sign-in link that does not open, which shows the reason', async () => {
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
    const { id } = await createLink(['view']);
    await signIn(page, posthorn);
    await open('api-keys');
    await revoke('Own', 'Revoke API key “Own”?');
    await expectFocusOn('API keys');
    await open(`apps/${own.appId}`);
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

describe('The portal of an app', () => {
  it('shows the webhooks of its app and no others, in the name of the platform', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view'], { theme: { name: 'Acme Pay', colorScheme: 'dark' } }));
    await heading('Webhooks');
    await page.getByRole('link', { name: own.url }).waitFor();
    expect(await page.getByRole('link', { name: other.url }).count()).toBe(0);
    expect(await page.getByText('Acme Pay').count()).toBe(1);
    expect(page.url()).not.toContain('#');
    expect(await page.evaluate('document.documentElement.dataset.mantineColorScheme')).toBe('dark');
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'portal-webhooks');
  });

  it('offers only what the link allows', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view'], { path: `/webhooks/${own.webhookId}` }));
    await heading(own.url);
    for (const name of ['Settings', 'Testing']) {
      expect(await page.getByRole('tab', { name }).count()).toBe(0);
    }
    expect(await page.getByText('Show secret').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
  });

  it('sends a failed delivery again where the link allows it', async () => {
    const { page } = browser;
    endpoint.answerWith(500);
    const { messageId } = await posthorn.api.send({ appId: own.appId }, { order: 17 });
    await page.goto(await makeLink(['view', 'resend'], { path: `/messages/${messageId}` }));
    await page.getByRole('article').getByText('exhausted', { exact: true }).waitFor();
    endpoint.answerWith(200);
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.getByRole('article').getByText('delivered', { exact: true }).waitFor();
  });

  it('changes a webhook where the link allows it', async () => {
    const { page } = browser;
    const path = `/webhooks/${own.webhookId}?tab=settings`;
    await page.goto(await makeLink(['view', 'manage'], { path }));
    await page.getByLabel('Name', { exact: true }).fill('Renamed by the customer');
    await page.getByRole('button', { name: 'Add metadata' }).click();
    await page.getByLabel('Metadata key 1').fill('team');
    expect(await page.getByLabel('Uid', { exact: true }).count()).toBe(0);
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
  });

  it('creates a webhook with a password, and requires it again when the URL has another host', async () => {
    const { page } = browser;
    const receiver = await startReceiver();
    await page.goto(await makeLink(['view', 'manage'], { path: '/webhooks/new' }));
    await page.getByLabel(/^URL/).fill(`${endpoint.url}/guarded`);
    await page.getByLabel('Method').selectOption('basic');
    await page.getByLabel(/^User name/).fill('shop');
    await page.getByLabel(/^Password/).fill('first');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await heading(`${endpoint.url}/guarded`);
    expect(await authOf(page.url())).toEqual({
      method: 'basic',
      username: 'shop',
      password: 'first',
    });
    await page.getByRole('tab', { name: 'Settings' }).click();
    await page.getByText('Leave empty to keep the stored one').waitFor();
    await page.getByLabel(/^URL/).fill(receiver.url);
    await page.getByText('Must be given again').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'portal-password-again');
    await page.getByLabel(/^Password/).fill('second');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await page.getByLabel(/^Password/).inputValue()).toBe('');
    await page.getByRole('tab', { name: 'Testing' }).click();
    await page.getByRole('button', { name: 'Send test message' }).click();
    await page.getByText('the endpoint accepted it (200)').waitFor();
    expect(receiver.received[0]?.headers.authorization).toBe(`Basic ${btoa('shop:second')}`);
    await receiver.close();
  });

  async function authOf(pageUrl: string): Promise<object> {
    const id = /wh_\w+/.exec(pageUrl)?.[0] ?? '';
    const answer = await posthorn.api.get(`/api/v1/webhooks/${id}`);
    return dataOf<{ authMethod: object }>(answer).authMethod;
  }

  it('sets, shows and removes a private CA of a webhook', async () => {
    const { page } = browser;
    const path = `/webhooks/${own.webhookId}?tab=settings`;
    await page.goto(await makeLink(['view', 'manage'], { path }));
    await page.getByText('TLS: client certificate and private CA').click();
    await page.getByLabel('Private CA').fill('no PEM');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('The fields that are marked').waitFor();
    await page.getByLabel('Private CA').fill(selfSigned('ca.example').cert);
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await page.getByText('Private CA: CN=ca.example').isVisible()).toBe(false);
    await page.getByText('TLS: client certificate and private CA').click();
    await page.getByText('Private CA: CN=ca.example, valid until').waitFor();
    await takePicture(page, 'portal-webhook-tls');
    await page.getByLabel('Remove the TLS settings').check();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByLabel('Remove the TLS settings').waitFor({ state: 'detached' });
  });

  it('ends by signing out', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view']));
    await heading('Webhooks');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading('Your visit has ended');
    await page.reload();
    await heading('Your visit has ended');
  });

  it('reports in a tab that another tab opened another portal', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view']));
    await heading('Webhooks');
    const tab = await page.context().newPage();
    await tab.goto(await makeLink(['view']));
    await tab.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Messages' }).click();
    await heading('Your visit has ended');
    await page.getByText('This browser began another session since').waitFor();
    await tab.close();
  });

  it('shows nothing of another app', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view', 'manage', 'secrets', 'resend']));
    await heading('Webhooks');
    await page.goto(`${page.url().replace(/\/webhooks$/, '')}/webhooks/${other.webhookId}`);
    await page.getByText('Could not load the webhook').waitFor();
  });

  it.each([
    ['was used', async (url: string) => browser.page.goto(url).then(() => heading('Webhooks'))],
    ['is not whole', () => Promise.resolve()],
  ])('refuses a link that %s, and says why', async (which, use) => {
    const { page } = browser;
    const url = await makeLink(['view']);
    await use(url);
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(which === 'is not whole' ? url.slice(0, -4) : url);
    await heading('This link does not open the portal');
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'portal-refused');
  });

  it('sends requests to its own origin only, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /** After the test of the console, where browsers report refused frames. */
  describe('in a frame of the platform', () => {
    let platform: FramingPage;

    beforeAll(async () => {
      platform = await startFramingPage();
    });

    afterAll(() => platform.close());

    async function frameAt(origin: string): Promise<string> {
      const { page } = browser;
      platform.show(await makeLink(['view']));
      await page.goto(origin);
      const frame = await page.locator('iframe').elementHandle();
      const content = await frame.contentFrame();
      return content?.url() ?? '';
    }

    async function untilRefused(origin: string): Promise<void> {
      const frame = browser.page.frameLocator('iframe');
      await frame.getByText('This page may not be shown in this frame').waitFor();
      await frame.getByText(origin, { exact: true }).waitFor();
    }

    it('is refused while its origin is not listed, and shown when it is', async () => {
      const { page } = browser;
      const { ip, name } = platform.origins;
      await frameAt(ip);
      await untilRefused(ip);
      await takePicture(page, 'portal-in-a-foreign-frame');
      dataOf(await posthorn.api.put('/api/v1/portal-settings', { origins: [ip] }));
      await frameAt(ip);
      const frame = page.frameLocator('iframe');
      await frame.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
      await frame.getByRole('link', { name: own.url }).waitFor();
      await takePicture(page, 'portal-in-a-frame');
      await frameAt(name);
      await untilRefused(name);
      // Without the header of the browser, it is the browser that refuses.
      platform.hideItself();
      expect(await frameAt(name)).toMatch(/^chrome-error:/);
    });

    it('reports that the browser refuses the cookie of a frame of another site', async () => {
      const { page } = browser;
      const { name } = platform.origins;
      dataOf(await posthorn.api.put('/api/v1/portal-settings', { origins: [name] }));
      await frameAt(name);
      const frame = page.frameLocator('iframe');
      await frame.getByText('Your browser kept no cookie for the portal').waitFor();
      await frame.getByText('cookie_refused').waitFor();
    });
  });
});
