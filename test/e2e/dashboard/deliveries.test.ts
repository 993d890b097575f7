import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Route } from 'playwright-core';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, type Browser, signIn } from '../../support/browser/browser.ts';
import { takePicture } from '../../support/browser/check-page.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { eventually } from '../../support/time/eventually.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';

describe('The deliveries of a message in the dashboard', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1s,4s', CIRCUIT_RESET_MS: '100' });
    endpoint = await startBusyEndpoint();
    browser = await startBrowser(posthorn.baseUrl);
    await signIn(browser.page, posthorn);
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  it('shows of a webhook its own deliveries, not the state of their messages', async () => {
    const { page } = browser;
    const { appId, webhookId } = await posthorn.api.createTarget(`${endpoint.url}/own`);
    const other = { appId, url: 'http://127.0.0.1:1/refuses' };
    dataOf(await posthorn.api.post('/webhooks', other), 201);
    const { messageId } = await posthorn.api.send({ appId }, { order: 21 });
    await page.goto(`${posthorn.baseUrl}/dashboard/messages?appId=${appId}`);
    const row = page.getByRole('row').filter({ hasText: messageId });
    await row.getByText('pending', { exact: true }).waitFor();
    // Nobody reloads, and the other webhook refuses the last attempt.
    await row.getByText('exhausted', { exact: true }).waitFor({ timeout: 20_000 });

    await page.goto(`${posthorn.baseUrl}/dashboard/webhooks/${webhookId}?tab=attempts`);
    await row.getByText('delivered', { exact: true }).waitFor();
    await page.getByLabel('Status').selectOption('delivered');
    await row.waitFor();
    await page.getByLabel('Status').selectOption('exhausted');
    await page.getByText('No message matches').waitFor();
  }, 60_000);

  it('empties the field of a list when something else clears its filter', async () => {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/webhooks`);
    const field = page.getByLabel('Find by URL, name or event type');
    await field.fill('none-of-them');
    await page.getByRole('button', { name: 'Show all webhooks' }).click();
    await page.getByRole('table', { name: 'Webhooks' }).waitFor();
    await eventually('the empty field', async () => (await field.inputValue()) === '');
    await page.goBack();
    await page.getByText('No webhook matches').waitFor();
    expect(await field.inputValue()).toBe('none-of-them');
  });

  it('says why an attempt waits whose time has come', async () => {
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
    await page.getByText('Can be resent once no attempt follows').waitFor();
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
