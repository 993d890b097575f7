import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBrowser, type Browser } from '../../support/browser/browser.ts';
import { signIn } from '../../support/browser/sign-in.ts';
import { createCompany } from '../../support/process/companies.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';

/** Each step goes on where the one before ended, as a person would. */
describe('The dashboard, from the first sign-in on', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1s,4s', CIRCUIT_RESET_MS: '100' });
    endpoint = await startBusyEndpoint();
    browser = await startBrowser(posthorn.baseUrl);
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  const heading = async (name: string | RegExp): Promise<void> =>
    browser.page.getByRole('heading', { name, level: 1 }).waitFor();

  it('refuses a wrong key and says why', async () => {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/`);
    await page.getByLabel('Company id').fill(posthorn.companyId);
    await page.getByLabel(/^API key/).fill('phk_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Could not sign in').waitFor();
  });

  it('creates a project, an app and a webhook', async () => {
    const { page } = browser;
    await signIn(page, posthorn);
    await page.getByRole('link', { name: 'Projects and apps' }).click();
    await heading('Projects and apps');
    await create('project', 'Shop');
    await create('app', 'Orders');
    await page.getByRole('link', { name: 'Create webhook' }).click();
    await page.getByLabel(/^URL/).fill(endpoint.url);
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await heading(endpoint.url);
  });

  async function create(kind: 'project' | 'app', name: string): Promise<void> {
    const { page } = browser;
    await page.getByRole('button', { name: `Create ${kind}` }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: `Create ${kind}` }).click();
    await heading(name);
  }

  it('shows the answer to a test message', async () => {
    const { page } = browser;
    await page.getByRole('button', { name: 'Send test message' }).click();
    await page.getByText('the endpoint accepted it (200)').waitFor();
    await page.getByRole('button', { name: /^Answer and headers/ }).click();
    await page.getByText('Headers that were sent').waitFor();
  });

  it('shows a message delivered', async () => {
    await send();
    await status('delivered');
  });

  async function send(): Promise<void> {
    const { page } = browser;
    await page.getByRole('link', { name: 'Messages' }).click();
    await page.getByRole('link', { name: 'Send a message' }).click();
    await page.getByRole('combobox', { name: 'App' }).fill('orders');
    await page.getByRole('option', { name: 'Shop › Orders' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await heading('Message');
  }

  async function status(word: string): Promise<void> {
    await browser.page.getByRole('article').getByText(word, { exact: true }).waitFor();
  }

  it('shows the retries of a broken receiver, why they fail, and when the next one is', async () => {
    const { page } = browser;
    endpoint.answerWith(500);
    await send();
    await page.getByText('Attempt 1: the endpoint failed to process it (500)').waitFor();
    await page.getByText(/^Next attempt/).waitFor();
    await page.getByText('Attempt 3: the endpoint failed to process it (500)').waitFor();
    await status('exhausted');
  });

  it('sends again, and shows it delivered', async () => {
    const { page } = browser;
    endpoint.answerWith(200);
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.getByText('Resend, attempt 4: the endpoint accepted it (200)').waitFor();
    await status('delivered');
  });

  it('finds what an id names, from the keyboard', async () => {
    const { page } = browser;
    const messageId = page.url().split('/').at(-1) ?? '';
    await page.goto(`${posthorn.baseUrl}/dashboard/webhooks`);
    await heading('Webhooks');
    await page.keyboard.press('/');
    await page.keyboard.type(messageId);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/messages/${messageId}`);
  });

  it('announces new messages without moving the list', async () => {
    const { page } = browser;
    await page.getByRole('link', { name: 'Messages' }).click();
    await heading('Messages');
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr');
    await rows.first().waitFor();
    const before = await rows.count();
    const { body } = await posthorn.api.get('/api/v1/webhooks');
    const [{ id: webhookId }] = body.data as [{ id: string }];
    await posthorn.api.send({ webhookId }, { order: 18 });
    await page.getByRole('button', { name: /^Show (1|what is) new$/ }).waitFor();
    expect(await rows.count()).toBe(before);
    await page.getByRole('button', { name: /^Show (1|what is) new$/ }).click();
    await rows.nth(before).waitFor();
  });

  it('leaves nothing of a session to the next one, which is that of another company', async () => {
    const { page } = browser;
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await page.getByRole('link', { name: endpoint.url }).waitFor();
    const other = await createCompany(posthorn, 'Other');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel(/^API key/).fill(other.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await heading('Webhooks');
    expect(await page.getByRole('link', { name: endpoint.url }).count()).toBe(0);
  });

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
