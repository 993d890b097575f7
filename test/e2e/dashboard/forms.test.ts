import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { signIn, startBrowser, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';

const { posthorn } = useCompany('contract');
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

const NOWHERE = 'http://127.0.0.1:9';

describe('The form of a webhook', () => {
  let webhookId: string;

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

  it('sends only typed fields, even when the webhook has changed since', async () => {
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

  it('sets and takes away what ends deliveries before their schedule', async () => {
    const { page } = browser;
    const stored = async () => dataOf(await posthorn.api.get(`/api/v1/webhooks/${webhookId}`));
    await field('Attempts of a delivery').fill('3');
    await field('Statuses after which a delivery is not tried again').fill('400, 429');
    await field('Disable this webhook when its endpoint answers 410').check();
    await field('Let the endpoint control deliveries').check();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('must be a status from 400 to 599').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await field('Statuses after which a delivery is not tried again').fill('400 422');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    const set = { maxAttempts: 3, finalStatusCodes: [400, 422], onGone: 'disable' };
    expect(await stored()).toMatchObject({ ...set, obeyControlHeaders: true });
    await field('Attempts of a delivery').fill('');
    await field('Statuses after which a delivery is not tried again').fill('');
    await page.keyboard.press('Enter');
    await eventually('the defaults', async () => {
      const { maxAttempts, finalStatusCodes } = (await stored()) as Record<string, unknown>;
      return maxAttempts === null && finalStatusCodes === null;
    });
  });

  it('tests a filter with the newest message, and stores it', async () => {
    const { page } = browser;
    const target = await posthorn.api.get(`/api/v1/webhooks/${webhookId}`);
    const { appId } = dataOf<{ appId: string }>(target);
    const payload = { amount: 99 };
    await posthorn.api.send({ appId, eventType: 'order.paid', tags: ['eu'] }, payload);
    await field('Filter').fill('{"payload": ');
    await page.getByText('This is no JSON object').waitFor();
    await field('Filter').fill('{"payload": {"amount": {"$gte": 100}}, "tags": "eu"}');
    await page.getByText('Test the filter', { exact: true }).first().click();
    await page.getByRole('button', { name: 'Use the newest message' }).click();
    await eventually('the payload', async () =>
      (await field('Payload to test with').inputValue()).includes('99'),
    );
    expect(await field('Its event type').inputValue()).toBe('order.paid');
    await page.getByRole('button', { name: 'Test the filter' }).click();
    await page.getByText('it does not meet payload.amount.$gte').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'webhook-filter-test');
    await field('Payload to test with').fill('{"amount": 100}');
    await field('Its event type').press('Enter');
    await page.getByText('The message passes the filter.').waitFor();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    const stored = dataOf(await posthorn.api.get(`/api/v1/webhooks/${webhookId}`));
    expect(stored).toMatchObject({ filter: { payload: { amount: { $gte: 100 } }, tags: 'eu' } });
    await field('Filter').fill('{"payload": {"amount": {"$foo": 1}}}');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('filter.payload.amount.$foo is no operator').waitFor();
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
});

describe('The hold in the dashboard', () => {
  beforeAll(async () => {
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
  });

  it.each(['webhook', 'app'] as const)(
    'of a %s begins with a reason and an end, is shown in its list, and ends when it is resumed',
    async (kind) => {
      const { page } = browser;
      const url = `${endpoint.url}/held-${kind}`;
      const { webhookId, appId, projectId } = await posthorn.api.createTarget(url);
      const open = (path: string) => page.goto(`${posthorn.baseUrl}/dashboard/${path}`);
      const own = kind === 'webhook' ? `webhooks/${webhookId}` : `apps/${appId}`;
      const held = async () => {
        const answer = await posthorn.api.get(`/api/v1/${own}`, { companyid: posthorn.companyId });
        return dataOf<{ held: object | null }>(answer).held;
      };
      await open(own);
      await page.getByRole('button', { name: 'Hold deliveries' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Reason').fill('A move of the endpoint');
      await dialog.getByLabel('End (your time)').fill('2001-01-01T00:00');
      await dialog.getByRole('button', { name: 'Hold deliveries' }).click();
      await dialog.getByText('Could not hold the deliveries').waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await dialog.getByLabel('End (your time)').fill('');
      await dialog.getByRole('button', { name: 'Hold deliveries' }).click();
      await page.getByText('A move of the endpoint').waitFor();
      expect(await held()).toMatchObject({ reason: 'A move of the endpoint', until: null });
      await takePicture(page, `${kind}-on-hold`);
      const { messageId } = await posthorn.api.send({ appId }, { n: 1 });
      await open(`messages/${messageId}`);
      await page.getByText('The first attempt waits for the end of a hold').waitFor();

      await open(kind === 'webhook' ? `webhooks?appId=${appId}` : `projects/${projectId}`);
      await page.getByText('on hold').waitFor();
      await open(own);
      await page.getByRole('button', { name: 'Change hold' }).click();
      await dialog.getByLabel('End (your time)').fill('2001-01-01T00:00');
      await dialog.getByRole('button', { name: 'Change hold' }).click();
      await dialog.getByText('Could not change the hold').waitFor();
      const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
      await dialog.getByLabel('End (your time)').fill(tomorrow);
      await dialog.getByRole('button', { name: 'Change hold' }).click();
      await dialog.waitFor({ state: 'hidden' });
      expect(await held()).toMatchObject({
        reason: 'A move of the endpoint',
        until: expect.any(String),
      });
      await page.getByRole('button', { name: 'Resume deliveries' }).click();
      await dialog.getByLabel('Most deliveries of a webhook per second').fill('50');
      await dialog.getByRole('button', { name: 'Resume deliveries' }).click();
      await page.getByRole('button', { name: 'Hold deliveries' }).waitFor();
      expect(await held()).toBeNull();
    },
  );
});

describe('Several deliveries that are not delivered', () => {
  beforeAll(async () => {
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
  });

  it('are found by what they wait for, cancelled at once, found by the reason, and sent again', async () => {
    const { page } = browser;
    const { api, baseUrl } = posthorn;
    const { webhookId } = await api.createTarget(`${endpoint.url}/several`);
    await api.post(`/api/v1/webhooks/${webhookId}/hold`, {});
    for (const n of [1, 2, 3]) await api.send({ webhookId }, { n });
    const of = `webhookId=${webhookId}`;
    const listed = async (query: string) =>
      dataOf<object[]>(await api.get(`/api/v1/deliveries?${of}&${query}`));
    await eventually('they wait', async () => (await listed('waiting=hold')).length === 3);
    await page.goto(`${baseUrl}/dashboard/deliveries?${of}`);
    await page.getByRole('combobox', { name: 'Waits' }).click();
    await page.getByRole('option', { name: 'on hold' }).click();
    await page.getByRole('button', { name: 'Select all shown' }).click();
    await takePicture(page, 'undelivered-selected');
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel 3 deliveries' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel 3 deliveries' }).click();
    await page.getByText('No delivery is pending').waitFor();
    expect(await listed('reason=cancelled_by_client')).toHaveLength(3);

    await api.post(`/api/v1/webhooks/${webhookId}/resume`, {});
    await page.goto(`${baseUrl}/dashboard/deliveries?${of}&status=cancelled`);
    await page.getByRole('combobox', { name: 'Reason' }).click();
    await page.getByRole('option', { name: 'cancelled by client' }).click();
    await page.getByRole('checkbox').first().check();
    await page.getByRole('button', { name: 'Resend 1 delivery' }).click();
    await dialog.getByRole('button', { name: 'Resend 1 delivery' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await eventually('it is sent', async () => (await listed('status=delivered')).length === 1);
  });
});

describe('All deliveries that match the filters', () => {
  beforeAll(async () => {
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
  });

  it('are cancelled, and sent again, after a question that shows the plan', async () => {
    const { page } = browser;
    const { api, baseUrl } = posthorn;
    const { webhookId } = await api.createTarget(`${endpoint.url}/matching`);
    await api.post(`/api/v1/webhooks/${webhookId}/hold`, {});
    for (const n of [1, 2, 3]) await api.send({ webhookId }, { n });
    const of = `webhookId=${webhookId}`;
    const count = async (query: string): Promise<number> =>
      dataOf<object[]>(await api.get(`/api/v1/deliveries?${of}&${query}`)).length;
    await eventually('they wait', async () => (await count('waiting=hold')) === 3);
    await page.goto(`${baseUrl}/dashboard/deliveries`);
    await page.getByRole('heading', { name: 'Undelivered' }).waitFor();
    expect(await page.getByRole('button', { name: 'Cancel all that match' }).count()).toBe(0);
    await page.goto(`${baseUrl}/dashboard/deliveries?${of}`);
    await page.getByRole('button', { name: 'Cancel all that match' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('3 deliveries to 1 webhook match.').waitFor();
    await takePicture(page, 'undelivered-cancel-all');
    expect(await findBarriers(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel all that match' }).click();
    await page.getByText(/^The cancellation is running/).waitFor();
    await eventually('all are cancelled', async () => (await count('status=cancelled')) === 3);

    await api.post(`/api/v1/webhooks/${webhookId}/resume`, {});
    await page.goto(`${baseUrl}/dashboard/deliveries?${of}&status=cancelled`);
    await page.getByRole('button', { name: 'Resend all that match' }).click();
    await dialog.getByText('3 deliveries to 1 webhook match.').waitFor();
    await dialog.getByRole('button', { name: 'Resend all that match' }).click();
    await page.getByText(/^The resend is/).waitFor();
    await eventually('all are sent', async () => (await count('status=delivered')) === 3);

    await page.goto(`${baseUrl}/dashboard/resends?${of}`);
    const cancellations = page.getByRole('table', { name: 'Cancellations' });
    await cancellations.getByRole('row').nth(1).getByText('3', { exact: true }).waitFor();
    await takePicture(page, 'resends-and-cancellations');
    expect(await findBarriers(page)).toEqual([]);
  });
});

describe('A replay of what a webhook has missed', () => {
  it('is counted and sent for the chosen time and event types, and counted anew before another one', async () => {
    const { page } = browser;
    const { api, baseUrl } = posthorn;
    const { webhookId: first, appId } = await api.createTarget(`${endpoint.url}/first`);
    for (const eventType of ['order.paid', 'order.paid', 'order.sent'])
      await api.send({ appId, eventType }, { eventType });
    const made = await api.post('/webhooks', { url: `${endpoint.url}/later`, appId });
    const { id: later } = dataOf<{ id: string }>(made, 201);
    await page.goto(`${baseUrl}/dashboard/webhooks/${later}`);
    await page.getByLabel('Event types').fill('order.paid');
    await page.getByRole('button', { name: 'Count missed messages' }).click();
    await page.getByText('2 messages of its app were sent without it').waitFor();
    await page.getByRole('button', { name: 'Send missed messages' }).click();
    await page.getByText('The replay is done.').waitFor();
    await page.getByText('Count what it has missed before it is sent.').waitFor();
    await page.getByLabel('Event types').fill('');
    await page.getByLabel('Until (your time)').fill('2001-01-01T00:00');
    await page.getByRole('button', { name: 'Count missed messages' }).click();
    await page.getByText('Could not count what it has missed').waitFor();
    const sent = dataOf<object[]>(await api.get(`/api/v1/deliveries?webhookId=${later}`));
    expect([sent.length, first === later]).toEqual([2, false]);
  });
});

/** Base64 of 24 bytes, as an endpoint of Svix has. */
const OWN_SECRET = `whsec_${Buffer.alloc(24, 'own').toString('base64')}`;
const NEXT_SECRET = `whsec_${Buffer.alloc(32, 'next').toString('base64')}`;

describe('What clients name by themselves in the dashboard', () => {
  const uid = 'customer-17';
  let appId: string;

  beforeAll(async () => {
    await browser.page.context().clearCookies();
    await signIn(browser.page, posthorn);
  });

  async function open(path: string): Promise<void> {
    await browser.page.goto(`${posthorn.baseUrl}/dashboard/${path}`);
  }

  async function read(path: string): Promise<object> {
    const { api, companyId: companyid } = posthorn;
    return dataOf<object>(await api.get(`/api/v1/${path}`, { companyid }));
  }

  async function fillApp(name: string): Promise<void> {
    const dialog = browser.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByLabel('Uid', { exact: true }).fill(uid);
    await dialog.getByRole('button', { name: 'Add metadata' }).click();
    await dialog.getByLabel('Metadata key 1').fill('plan');
    await dialog.getByLabel('Metadata value 1').fill('gold');
    await dialog.getByRole('button', { name: 'Create app' }).click();
  }

  it('creates an app with a uid and metadata, and refuses the uid a second time at its field', async () => {
    const { page } = browser;
    const { projectId } = await posthorn.api.createTarget(`${endpoint.url}/named`);
    await open(`projects/${projectId}`);
    await page.getByRole('button', { name: 'Create app' }).click();
    await fillApp('Customer 17');
    await page.getByRole('heading', { name: 'Customer 17', level: 1 }).waitFor();
    await page.getByRole('button', { name: `Copy uid ${uid}` }).waitFor();
    await page.getByRole('button', { name: 'Copy metadata plan gold' }).waitFor();
    const app = await read(`apps/uid:${uid}`);
    expect(app).toMatchObject({ uid, metadata: { plan: 'gold' } });
    ({ id: appId } = app as { id: string });

    await open(`projects/${projectId}`);
    await page.getByRole('button', { name: 'Create app' }).click();
    await fillApp('Another one');
    await page.getByText('Could not create the app').waitFor();
    expect(await page.getByText(`Another app has the uid ${uid}.`).count()).toBe(1);
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'uid-taken');
  });

  it('finds the app by its uid, with and without its mark', async () => {
    const { page } = browser;
    for (const text of [`uid:${uid}`, uid]) {
      await open('projects');
      await page.getByLabel('Find anything by its id or uid').fill(text);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/apps/${appId}`);
    }
  });

  it('creates a webhook with an own secret, and rotates it to another one', async () => {
    const { page } = browser;
    await open(`webhooks/new?appId=${appId}`);
    await page.getByLabel(/^URL/).fill(`${endpoint.url}/own-secret`);
    await page.getByLabel('Uid', { exact: true }).fill(uid);
    await page.getByLabel('Own secret', { exact: true }).fill('whsec_dG9vIHNob3J0');
    await page.getByLabel('Also send the headers of Svix').check();
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await page.getByText('must be whsec_ and the base64, with its padding').waitFor();
    await page.getByLabel('Own secret', { exact: true }).fill(OWN_SECRET);
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await page.getByRole('heading', { name: `${endpoint.url}/own-secret`, level: 1 }).waitFor();
    const signatureHeaders = ['webhook', 'svix'];
    expect(await read(`webhooks/uid:${uid}`)).toMatchObject({
      secret: OWN_SECRET,
      signatureHeaders,
    });

    await page.getByRole('tab', { name: 'Overview' }).click();
    await page.getByLabel('Own secret', { exact: true }).fill(NEXT_SECRET);
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('There is a new secret.').waitFor();
    expect(await page.getByLabel('Own secret', { exact: true }).inputValue()).toBe('');
    expect(await read(`webhooks/uid:${uid}`)).toMatchObject({ secret: NEXT_SECRET });
  });

  it('offers everything that has the same uid', async () => {
    const { page } = browser;
    await page.getByLabel('Find anything by its id or uid').fill(`uid:${uid}`);
    await page.keyboard.press('Enter');
    await page.getByText('Several have this uid').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'uid-of-several');
    await page.getByRole('button', { name: 'Open the app' }).click();
    await page.waitForURL(`**/apps/${appId}`);
  });

  it('takes a uid and an entry of metadata away', async () => {
    const { page } = browser;
    await page.getByRole('button', { name: 'Edit app' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Uid', { exact: true }).fill('');
    await dialog.getByRole('button', { name: 'Remove metadata plan' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await read(`apps/${appId}`)).toMatchObject({ uid: null, metadata: {} });
  });

  it('finds messages by a tag and by an external id, and keeps both in the address', async () => {
    const { page } = browser;
    const order = { appId, tags: ['order-17', 'vip'], externalId: '17' };
    const { messageId } = await posthorn.api.send(order, { order: 17 });
    await posthorn.api.send({ appId, tags: ['order-18'] }, { order: 18 });
    await open(`messages?appId=${appId}`);
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr');
    await rows.nth(1).waitFor();
    await page.getByLabel('Tag').fill('vip');
    await page.waitForURL('**&tag=vip');
    await rows.nth(1).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: messageId }).waitFor();
    await open('messages?externalId=17');
    await page.getByRole('link', { name: messageId }).click();
    await page.getByRole('button', { name: 'Copy external id 17' }).waitFor();
    await page.getByRole('button', { name: 'Copy tag vip' }).waitFor();
    expect(await rows.count()).toBe(1);
  });

  it('shows the times of a message, and erases its payload', async () => {
    const { page } = browser;
    const deliverAt = new Date(Date.now() + 3_600_000).toISOString();
    const times = { deliverAt, retentionDays: 3 };
    const { messageId } = await posthorn.api.send({ appId, ...times }, { card: '4711' });
    await open(`messages/${messageId}`);
    await page.getByText('Deliver at').waitFor();
    await page.getByText('3 days', { exact: true }).waitFor();
    await page.getByText('4711').waitFor();
    await page.getByRole('button', { name: 'Erase payload' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Erase payload' }).click();
    await page.getByText('It was erased').waitFor();
    expect(await read(`webhook-messages/${messageId}`)).toMatchObject({ payload: null });
  });

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
