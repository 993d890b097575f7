import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { Route } from 'playwright-core';
import { dataOf } from '../../support/api/expect-answers.ts';
import { NARROW, startBrowser, WIDE, type Browser, signIn } from '../../support/browser/browser.ts';
import { findBarriers, isTooLarge, takePicture } from '../../support/browser/check-page.ts';
import { createCompany } from '../../support/process/companies.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const { posthorn } = useCompany('retries');
let endpoint: BusyEndpoint;
let browser: Browser;

beforeAll(async () => {
  endpoint = await startBusyEndpoint();
  browser = await startBrowser(posthorn.baseUrl);
}, 120_000);

afterAll(async () => {
  await browser.close();
  await endpoint.close();
}, 60_000);

const LOGO = {
  name: 'logo.svg',
  mimeType: 'image/svg+xml',
  buffer: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"/>'),
};

/** Each step goes on where the one before ended, as a person would. */
describe('The dashboard, from the first sign-in on', () => {
  const heading = async (name: string | RegExp): Promise<void> =>
    browser.page.getByRole('heading', { name, level: 1 }).waitFor();

  it('refuses a wrong key with a reason', async () => {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/`);
    await page.getByLabel('Company id').fill(posthorn.companyId);
    await page.getByLabel(/^API key/).fill('phk_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Could not sign in').waitFor();
  });

  it('shows the version of the release at its foot', async () => {
    await signIn(browser.page, posthorn);
    await browser.page.getByText(`Posthorn ${VERSION}`).waitFor();
  });

  it('creates a project, an app and a webhook', async () => {
    const { page } = browser;
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

  it('changes how the webhook authenticates, and shows an error beside its field', async () => {
    const { page } = browser;
    await page.getByRole('tab', { name: 'Settings' }).click();
    await page.getByLabel('Method').selectOption('apiKey');
    await page.getByLabel(/^Header of the API key/).fill('Host');
    await page.getByLabel(/^API key/).fill('phk_of_the_endpoint');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Could not change the webhook').waitFor();
    expect(await page.getByText('is a header that the service or the connection').count()).toBe(1);
    await takePicture(page, 'webhook-settings-refused');
    await page.getByLabel('Method').selectOption('oauth2');
    await page.getByText('TLS: client certificate and private CA').click();
    await browser.show({ ...NARROW, scheme: 'dark' });
    expect(await findBarriers(page)).toEqual([]);
    expect(await isTooLarge(page)).toBe(false);
    await takePicture(page, 'webhook-settings-oauth2');
    await browser.show({ ...WIDE, scheme: 'light' });
    await page.getByLabel('Method').selectOption('hmac');
    await page.getByLabel('Algorithm').selectOption('ed25519');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    const answer = await posthorn.api.get(`/api/v1/webhooks/${await onlyIn('webhooks')}`);
    expect(dataOf(answer)).toMatchObject({ authMethod: { signatureAlgorithm: 'ed25519' } });
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
    const webhookId = await onlyIn('webhooks');
    await posthorn.api.send({ webhookId }, { order: 18 });
    await page.getByRole('button', { name: /^Show (1|what is) new$/ }).waitFor();
    expect(await rows.count()).toBe(before);
    await page.getByRole('button', { name: /^Show (1|what is) new$/ }).click();
    await rows.nth(before).waitFor();
  });

  it('finds messages by their event type, and keeps that in the address', async () => {
    const { page } = browser;
    const webhookId = await onlyIn('webhooks');
    const { id } = await sendTyped(webhookId, 'order.paid');
    await page.getByLabel('Event type').fill('order.paid');
    await page.waitForURL('**/messages?eventType=order.paid');
    await page.getByRole('link', { name: id }).waitFor();
    expect(await page.getByRole('table', { name: 'Messages' }).locator('tbody tr').count()).toBe(1);
  });

  /** The id of the only thing in a list. */
  async function onlyIn(list: 'webhooks' | 'find-apps'): Promise<string> {
    const [only] = dataOf<{ id: string }[]>(await posthorn.api.get(`/api/v1/${list}`));
    return only?.id ?? '';
  }

  async function sendTyped(webhookId: string, eventType: string): Promise<{ id: string }> {
    const fields = { webhookId, eventType, payload: {} };
    return dataOf(await posthorn.api.post('/webhook-messages', fields), 202);
  }

  it('shows how far a resend is, after a reload too, and aborts it', async () => {
    const { page } = browser;
    const { api } = posthorn;
    const webhookId = await onlyIn('webhooks');
    endpoint.answerWith(500);
    const since = new Date().toISOString();
    // Too few for a circuit, and one more than a page of the resend has.
    for (let n = 0; n < 3; n += 1) await api.send({ webhookId }, { order: n });
    await eventually('three exhausted', async () => {
      const query = `status=exhausted&webhookId=${webhookId}&from=${since}`;
      return dataOf<object[]>(await api.get(`/api/v1/webhook-messages?${query}`)).length === 3;
    });
    endpoint.hold();
    dataOf(await api.put(`/webhooks/${webhookId}`, { rateLimitPerSecond: 1 }));
    const started = await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
    const { id } = dataOf<{ id: string }>(started, 202);
    // Its attempts last for 15 s without a response.
    const resendPage = `${posthorn.baseUrl}/dashboard/resends/${id}`;
    await page.goto(resendPage);
    await page.getByRole('button', { name: 'Abort resend' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Abort resend' }).click();
    await page.getByText('aborting').waitFor();
    endpoint.answerWith(200);
    await page.getByText('aborted', { exact: true }).waitFor();
    await page.getByText('1 not sent').waitFor();
    await page.goto(`${posthorn.baseUrl}/dashboard/`);
    await page.getByLabel('Find anything by its id').fill(id);
    await page.keyboard.press('Enter');
    await page.waitForURL(resendPage);
    await page.reload();
    await page.getByText('1 not sent').waitFor();
    await page.getByRole('link', { name: 'Other resends of it' }).click();
    await page.getByRole('table', { name: 'Resends' }).getByText('aborted').waitFor();
  }, 120_000);

  it('describes a portal link, creates it, and revokes it', async () => {
    const { page } = browser;
    const appId = await onlyIn('find-apps');
    await page.goto(`${posthorn.baseUrl}/dashboard/apps/${appId}`);
    await page.getByLabel('First page').fill('nowhere');
    await page.getByText('Give a path such as').waitFor();
    expect(await page.getByRole('button', { name: 'Make a portal link' }).isDisabled()).toBe(true);
    await page.getByLabel('First page').fill('/messages');
    await page.getByLabel('Name above the pages').fill('Acme');
    await page.getByText('The visit begins at /messages').waitFor();
    await page.locator('input[type=file]').setInputFiles(LOGO);
    await page.getByRole('button', { name: 'Logo file' }).getByText('logo.svg').waitFor();
    await page.getByAltText('The logo').waitFor();
    await page.getByRole('button', { name: 'Make a portal link' }).click();
    await page.getByRole('button', { name: /^Copy portal link http.*\/messages#/ }).waitFor();
    const links = page.getByRole('table', { name: 'Portal links' });
    await links.getByText('not opened yet').waitFor();
    await takePicture(page, 'app-portal-links');
    await links.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No link can be used now').waitFor();
    expect(await page.getByRole('button', { name: /^Copy portal link/ }).count()).toBe(0);
  });

  const SPARE = 'Spare, for the nightly import of the warehouse in Bremerhaven';

  it('rotates an API key, and finds that in the audit log', async () => {
    const { page } = browser;
    const made = await posthorn.api.post('/api/v1/api-keys', { name: SPARE, scopes: ['read'] });
    const { id } = dataOf<{ id: string }>(made, 201);
    await page.getByRole('link', { name: 'API keys' }).click();
    const row = page.getByRole('row').filter({ hasText: 'Spare' });
    await row.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('The old key still works').selectOption('3600');
    await page.getByRole('button', { name: 'Rotate the key' }).click();
    await page.getByRole('button', { name: /^Copy API key phk_/ }).waitFor();
    await page.goto(`${posthorn.baseUrl}/dashboard/audit?targetId=${id}`);
    const long = page.getByRole('button', { name: `name: ${SPARE}` });
    await long.press('Enter');
    expect(await long.getAttribute('aria-expanded')).toBe('true');
    await page.getByLabel('What', { exact: true }).selectOption('API key rotated');
    await page.waitForURL('**/audit?*action=api_key.rotated*');
    await page.getByRole('table', { name: 'Audit events' }).getByText('graceSeconds').waitFor();
  });

  it('shows the next session, of another company, nothing of the one before', async () => {
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

  it('sends requests to its own origin only, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});

describe('The deliveries of a message in the dashboard', () => {
  beforeAll(async () => {
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
  });

  it('shows of a webhook its own deliveries, not the state of their messages', async () => {
    const { page } = browser;
    const { appId, webhookId } = await posthorn.api.createTarget(`${endpoint.url}/own`);
    const other = await startReceiver();
    const respond = other.hold();
    dataOf(await posthorn.api.post('/webhooks', { appId, url: other.url }), 201);
    const { messageId } = await posthorn.api.send({ appId }, { order: 21 });
    await page.goto(`${posthorn.baseUrl}/dashboard/messages?appId=${appId}`);
    const row = page.getByRole('row').filter({ hasText: messageId });
    await row.getByText('pending', { exact: true }).waitFor();
    // Nobody reloads, and the other webhook refuses every attempt.
    respond(500);
    await row.getByText('exhausted', { exact: true }).waitFor();
    await other.close();

    await page.goto(`${posthorn.baseUrl}/dashboard/webhooks/${webhookId}?tab=attempts`);
    await row.getByText('delivered', { exact: true }).waitFor();
    await page.getByLabel('Status').selectOption('delivered');
    await row.waitFor();
    await page.getByLabel('Status').selectOption('exhausted');
    await page.getByText('No message matches').waitFor();
  });

  it('empties the field of a list when something else clears its filter', async () => {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/webhooks`);
    const field = page.getByLabel('Find by URL, name, event type or uid');
    await field.fill('none-of-them');
    await page.getByRole('button', { name: 'Show all webhooks' }).click();
    await page.getByRole('table', { name: 'Webhooks' }).waitFor();
    await eventually('the empty field', async () => (await field.inputValue()) === '');
    await page.goBack();
    await page.getByText('No webhook matches').waitFor();
    expect(await field.inputValue()).toBe('none-of-them');
  });

  it('clears all filters of a list at once, typed times too', async () => {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/messages`);
    const fields = [page.getByLabel('From (your time)'), page.getByLabel('Tag')] as const;
    await fields[0].fill('2001-01-01T00:00');
    await fields[1].fill('none-of-them');
    await page.waitForURL('**&tag=none-of-them');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.waitForURL('**/messages');
    for (const field of fields) {
      await eventually('an empty field', async () => (await field.inputValue()) === '');
    }
  });

  it('shows why an overdue attempt waits', async () => {
    const { page } = browser;
    const { webhookId } = await posthorn.api.createTarget('http://127.0.0.1:1/waits');
    const { messageId } = await posthorn.api.send({ webhookId }, { order: 22 });
    const probeAt = new Date(Date.now() + 90_000).toISOString();
    const circuit = { webhookId, url: 'http://127.0.0.1:1/waits', appId: null, since: null };
    await page.route(/\/deliveries\?|\/deliveries$/, (route) => changeData(route, asOverdue));
    await page.route(/\/circuits$/, (route) =>
      changeData<object>(route, () => [{ ...circuit, circuit: 'open', probeAt }]),
    );
    await page.goto(`${posthorn.baseUrl}/dashboard/messages/${messageId}`);
    const waits = page.getByRole('listitem').filter({ hasText: 'waits' });
    await waits
      .getByText(
        /^The next attempt was due 1 minute ago and waits: the circuit of the endpoint is open\. It gets one attempt in 1 minute,/,
      )
      .waitFor();
    await page.getByRole('button', { name: /^Cancel dlv_/ }).waitFor();
    await takePicture(page, 'message-waits');
    await page.unrouteAll({ behavior: 'wait' });
  });
});

/** Answers as the gateway does, but for a change of the data. */
async function changeData<Data>(route: Route, change: (data: Data) => Data): Promise<void> {
  const response = await route.fetch();
  const body = (await response.json()) as { data: Data };
  await route.fulfill({ response, json: { ...body, data: change(body.data) } });
}

function asOverdue(deliveries: object[]): object[] {
  const nextAttemptAt = new Date(Date.now() - 60_000).toISOString();
  return deliveries.map((each) => ({ ...each, status: 'pending', nextAttemptAt }));
}
