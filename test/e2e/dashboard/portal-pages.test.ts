import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { findFlaws, findFlawsIn, type Pages } from '../../support/browser/look-at-pages.ts';
import { STATES } from '../../support/browser/page-states.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { expireLinks } from '../../support/stores/expire-links.ts';

const SQUARE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><rect width="24" height="24"/></svg>';
const THEME = {
  name: 'Acme Pay',
  primaryColor: '#0b5394',
  logoUrl: `data:image/svg+xml;base64,${Buffer.from(SQUARE).toString('base64')}`,
};

/** Pages that show something without an answer. */
const ASK_NOTHING = new Set(['portal-new-webhook', 'portal-no-page']);

const WORDS: Pages['words'] = {
  empty: null,
  loading: 'Waiting for',
  failed: 'Could not load',
  forbidden: 'Ask the site that gave you the link for one that allows it.',
  crowded: null,
};

describe('Every page of the portal', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;
  let appId: string;
  let pages: Pages;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1h' });
    endpoint = await startBusyEndpoint();
    browser = await startBrowser(posthorn.baseUrl);
    pages = await fill();
    await browser.page.goto(await makeLink());
    await browser.page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  async function makeLink(): Promise<string> {
    const capabilities = ['view', 'manage', 'secrets', 'resend'];
    const body = { expiresInSeconds: 3_600, capabilities, theme: THEME };
    const answer = await posthorn.api.post(`/api/v1/apps/${appId}/portal-links`, body);
    return dataOf<{ url: string }>(answer, 201).url;
  }

  /** One webhook that works and one that refuses, with a message to each, and a resend. */
  async function fill(): Promise<Pages> {
    const { api, baseUrl, companyId } = posthorn;
    const made = await api.createTarget(endpoint.url);
    ({ appId } = made);
    const { messageId } = await api.send({ appId }, { order: 17, text: 'ä'.repeat(400) });
    endpoint.answerWith(503);
    const url = `${endpoint.url}/${'a-long-path/'.repeat(20)}`;
    const fields = { appId, url, eventTypes: ['order.paid'] };
    const other = dataOf<{ id: string }>(await api.post('/api/v1/webhooks', fields), 201);
    const failing = await api.send({ appId, eventType: 'order.paid' }, { order: 18 });
    const since = new Date(0).toISOString();
    const resend = await api.post(`/api/v1/apps/${appId}/resend-failed`, { since });
    const paths = {
      webhooks: 'webhooks',
      'new-webhook': 'webhooks/new',
      webhook: `webhooks/${made.webhookId}`,
      'webhook-attempts': `webhooks/${other.id}?tab=attempts`,
      'webhook-settings': `webhooks/${made.webhookId}?tab=settings`,
      'webhook-testing': `webhooks/${made.webhookId}?tab=testing`,
      'missing-webhook': 'webhooks/wh_00000000000000000000000000',
      messages: 'messages',
      'side-panel': `messages?open=${failing.messageId}`,
      message: `messages/${messageId}`,
      resends: 'resends',
      resend: `resends/${dataOf<{ id: string }>(resend, 202).id}`,
      'no-page': 'api-keys',
    };
    const named = Object.entries(paths).map(([name, path]) => [`portal-${name}`, path] as const);
    return {
      url: `${baseUrl}/dashboard/portal/${companyId}/`,
      paths: new Map(named),
      askNothing: ASK_NOTHING,
      words: WORDS,
    };
  }

  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    expect(await findFlaws(browser, pages)).toEqual([]);
  }, 240_000);

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /** After the test of the console, where browsers report refused calls. */
  it.each(STATES)(
    'says what there is to say when it is %s',
    async (state) => {
      expect(await findFlawsIn(state, browser, pages)).toEqual([]);
    },
    120_000,
  );

  it('is not shown by a link that has expired, which says so', async () => {
    const { page } = browser;
    await page.context().clearCookies();
    const url = await makeLink();
    await expireLinks(posthorn.env);
    await page.goto('about:blank');
    await page.goto(url);
    await page.getByRole('heading', { name: 'This link does not open the portal' }).waitFor();
    await page.getByText('This link has expired.').waitFor();
    await page.getByText('link_expired').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'portal-expired');
  });
});
