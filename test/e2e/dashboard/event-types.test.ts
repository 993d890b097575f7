import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { createResources } from '../../support/api/resources.ts';
import { NARROW, signIn, startBrowser, WIDE, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, isTooLarge, takePicture } from '../../support/browser/check-page.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const { posthorn } = useCompany('contract');
let receiver: Receiver;
let browser: Browser;
let projectId: string;
let appId: string;

beforeAll(async () => {
  receiver = await startReceiver();
  browser = await startBrowser(posthorn.baseUrl);
  const make = createResources(posthorn.api);
  ({ id: projectId } = await make.project({ name: 'Shop' }));
  ({ id: appId } = await make.app({ name: 'Orders', projectId }));
}, 240_000);

afterAll(async () => {
  await browser.close();
  await receiver.close();
}, 60_000);

const heading = (name: string): Promise<void> =>
  browser.page.getByRole('heading', { name, level: 1 }).waitFor();

const field = (name: string) => browser.page.getByLabel(name, { exact: true });

/** A webhook of the document. */
const webhook = (group: string, description: string, example?: object, schema?: object) => ({
  post: {
    tags: [group],
    description,
    requestBody: { content: { 'application/json': { example, schema } } },
  },
});

const EXAMPLE = { order: 17, amount: 250, currency: 'EUR', items: [{ sku: 'A-7', count: 2 }] };

const SCHEMA = {
  type: 'object',
  required: ['order', 'amount'],
  properties: { order: { type: 'integer' }, amount: { type: 'number', minimum: 0 } },
};

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  webhooks: {
    'order.paid': webhook(
      'Orders',
      'A customer has paid.\nThe amount is in euros.',
      EXAMPLE,
      SCHEMA,
    ),
    'order.sent': webhook('Orders', 'The parcel is on its way.', { order: 17 }),
    'invoice.created': webhook('Invoices', 'An invoice was made out.'),
    'invoice.lost': { post: { ...webhook('Invoices', 'Nobody needs it.').post, deprecated: true } },
  },
};

const lookAt = async (name: string): Promise<void> => {
  const { page } = browser;
  expect(await findBarriers(page)).toEqual([]);
  await takePicture(page, name);
  await browser.show({ ...NARROW, scheme: 'dark' });
  expect(await isTooLarge(page)).toBe(false);
  await takePicture(page, `${name}-narrow`);
  await browser.show({ ...WIDE, scheme: 'light' });
};

describe('The catalogue in the dashboard', () => {
  it('is imported from a document, after its changes were shown', async () => {
    const { page } = browser;
    await signIn(page, posthorn);
    await page.getByRole('link', { name: 'Event types' }).click();
    await heading('Event types');
    await field('Project').selectOption({ label: 'Shop' });
    await page.getByText('There are no event types yet').waitFor();
    await page.getByRole('button', { name: 'Import' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Document', { exact: true }).fill(JSON.stringify({ openapi: '2.0' }));
    await dialog.getByRole('button', { name: 'Show what would change' }).click();
    await dialog.getByText('must be 3.1 or 3.0').waitFor();
    await dialog.getByLabel('File with the document').setInputFiles({
      name: 'openapi.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(DOCUMENT)),
    });
    await dialog.getByRole('button', { name: 'Show what would change' }).click();
    await dialog.getByText('An import would be: 4 created').waitFor();
    await lookAt('event-types-import');
    await dialog.getByRole('button', { name: 'Import' }).click();
    await dialog.getByText('Imported: 4 created').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'order.paid' }).waitFor();
    await lookAt('event-types');
  });

  it('decides which messages are accepted', async () => {
    const { page } = browser;
    await page.getByLabel('Policy of the project').selectOption('known');
    await eventually('the policy', async () => {
      const project = await posthorn.api.get(`/api/v1/projects/${projectId}`);
      return dataOf<{ eventTypePolicy: string }>(project).eventTypePolicy === 'known';
    });
    await page.getByText('A message without a type of this catalogue').waitFor();
    await page.getByLabel('Policy of the project').selectOption('open');
    await page.getByText('The catalogue describes messages and decides nothing').waitFor();
  });

  it('shows a type with its schemas, and who selects it', async () => {
    const { page } = browser;
    const url = 'http://127.0.0.1:9/by-wildcard';
    dataOf(await posthorn.api.post('/webhooks', { appId, url, eventTypes: ['order.*'] }), 201);
    const address = `/api/v1/projects/${projectId}/event-types/order.paid`;
    const schema = { ...SCHEMA, title: 'Second' };
    dataOf(await posthorn.api.put(address, { schema }));
    await field('Find by name, group or description').fill('has paid');
    await page.getByRole('link', { name: 'order.sent' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'order.paid' }).click();
    await heading('order.paid');
    await page.getByRole('region', { name: 'Schema of order.paid' }).getByText('Second').waitFor();
    await page.getByRole('link', { name: url }).waitFor();
    await lookAt('event-type');
    await field('Version').selectOption('1');
    await page
      .getByRole('region', { name: 'Schema of order.paid' })
      .getByText('Second')
      .waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'All event types' }).click();
    await heading('Event types');
  });

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});

describe('A customer in the portal', () => {
  it('finds a type and reads its example', async () => {
    const { page } = browser;
    const body = { expiresInSeconds: 600, capabilities: ['view', 'manage'] };
    const link = await posthorn.api.post(`/api/v1/apps/${appId}/portal-links`, body);
    await page.context().clearCookies();
    await page.goto(dataOf<{ url: string }>(link, 201).url);
    await heading('Webhooks');
    await page.getByRole('link', { name: 'Event types' }).click();
    await heading('Event types');
    expect(await page.getByLabel('Policy of the project').count()).toBe(0);
    await lookAt('portal-event-types');
    await field('Find by name, group or description').fill('PAID');
    await page.getByRole('link', { name: 'order.paid' }).click();
    await heading('order.paid');
    await page.getByRole('region', { name: 'Example of order.paid' }).getByText('"A-7"').waitFor();
    await lookAt('portal-event-type');
  });

  it('chooses it for a webhook with a filter, and tests the filter with the example', async () => {
    const { page } = browser;
    await page.getByRole('link', { name: 'Create a webhook for it' }).click();
    await heading('Create a webhook');
    await page.getByLabel(/^URL/).fill(receiver.url);
    expect(await page.getByLabel(/^Event types/).inputValue()).toBe('order.paid');
    const catalogue = page.getByRole('group', { name: 'Catalogue' });
    expect(await catalogue.getByLabel('order.paid', { exact: true }).isChecked()).toBe(true);
    await catalogue.getByLabel('invoice.*', { exact: true }).check();
    expect(await catalogue.getByLabel('invoice.created', { exact: true }).isDisabled()).toBe(true);
    await catalogue.getByLabel('invoice.*', { exact: true }).uncheck();
    await field('Filter').fill('{"payload": {"amount": {"$gte": 300}}}');
    await page.getByText('Test the filter', { exact: true }).first().click();
    await field('Example to test with').selectOption('order.paid');
    await eventually('the example', async () =>
      (await field('Payload to test with').inputValue()).includes('"A-7"'),
    );
    await page.getByRole('button', { name: 'Test the filter' }).click();
    await page.getByText('it does not meet payload.amount.$gte').waitFor();
    await lookAt('portal-webhook-picker');
    await field('Filter').fill('{"payload": {"amount": {"$gte": 100}}}');
    await page.getByRole('button', { name: 'Test the filter' }).click();
    await page.getByText('The message passes the filter.').waitFor();
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await heading(receiver.url);
    const id = /wh_\w+/.exec(page.url())?.[0] ?? '';
    expect(dataOf(await posthorn.api.get(`/api/v1/webhooks/${id}`))).toMatchObject({
      eventTypes: ['order.paid'],
      filter: { payload: { amount: { $gte: 100 } } },
    });
  });

  it('sends a test message of that type', async () => {
    const { page } = browser;
    await field('Event type of the test message').selectOption('order.paid');
    await lookAt('portal-test-of-a-type');
    await page.getByRole('button', { name: 'Send test message' }).click();
    await page.getByText('the endpoint accepted it (200)').waitFor();
    const [received] = receiver.received;
    expect(received?.headers['webhook-event-type']).toBe('order.paid');
    expect(JSON.parse(String(received?.body))).toEqual(EXAMPLE);
  });

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
