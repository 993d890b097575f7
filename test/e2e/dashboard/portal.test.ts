import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startBrowser, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { startFramingPage, type FramingPage } from '../../support/browser/framing-page.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { selfSigned } from '../../support/receivers/self-signed.ts';

interface Target {
  appId: string;
  webhookId: string;
  url: string;
}

describe('The portal of an app', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;
  let own: Target;
  let other: Target;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '300ms', CIRCUIT_RESET_MS: '100' });
    endpoint = await startBusyEndpoint();
    browser = await startBrowser(posthorn.baseUrl);
    own = await createTarget('own');
    other = await createTarget('other');
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  beforeEach(async () => {
    await browser.page.context().clearCookies();
  });

  async function createTarget(path: string): Promise<Target> {
    const url = `${endpoint.url}/${path}`;
    return { url, ...(await posthorn.api.createTarget(url)) };
  }

  async function makeLink(capabilities: string[], more: object = {}): Promise<string> {
    const body = { expiresInSeconds: 600, capabilities, ...more };
    const answer = await posthorn.api.post(`/api/v1/apps/${own.appId}/portal-links`, body);
    return dataOf<{ url: string }>(answer, 201).url;
  }

  const heading = async (name: string): Promise<void> =>
    browser.page.getByRole('heading', { name, level: 1 }).waitFor();

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
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
  });

  it('creates a webhook with a password, and asks for it again where another server would get it', async () => {
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

  it('gives a webhook a private CA, shows it, and removes it', async () => {
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

  it('says in a tab that another tab opened another portal', async () => {
    const { page } = browser;
    await page.goto(await makeLink(['view']));
    await heading('Webhooks');
    const other = await page.context().newPage();
    await other.goto(await makeLink(['view']));
    await other.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Messages' }).click();
    await heading('Your visit has ended');
    await page.getByText('This browser began another session since').waitFor();
    await other.close();
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

  it('asks no other origin, and leaves no error in the console', () => {
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

    it('says that the browser refuses the cookie of a frame of another site', async () => {
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
