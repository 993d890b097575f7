import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startBrowser, WIDE, type Browser, signIn } from '../../support/browser/browser.ts';
import { findFlaws, findFlawsIn, type Pages } from '../../support/browser/look-at-pages.ts';
import { STATES } from '../../support/browser/page-states.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';

/** Pages that show something without an answer. */
const ASK_NOTHING = new Set(['start', 'new-webhook', 'send', 'no-page']);

const WORDS: Pages['words'] = {
  empty: null,
  loading: 'Waiting for',
  failed: 'Could not load',
  forbidden: 'Sign in with an API key that has the scope.',
  crowded: null,
};

/** What the first steps make → how the address of its page begins. */
const MADE = {
  project: 'projects/proj_',
  app: 'apps/app_',
  webhook: 'webhooks/wh_',
  'newest message': 'messages/msg_',
};

describe('Every page of the dashboard', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;
  let pages: Pages;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1h' });
    endpoint = await startBusyEndpoint();
    browser = await startBrowser(posthorn.baseUrl);
    await signIn(browser.page, posthorn);
    await fill();
  }, 240_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  /** One webhook that works and one that refuses, with a message to each. */
  async function fill(): Promise<void> {
    const { api } = posthorn;
    const { projectId, appId, webhookId } = await api.createTarget(endpoint.url);
    const { messageId } = await api.send({ webhookId }, { order: 17, text: 'ä'.repeat(400) });
    endpoint.answerWith(503);
    const long = `${endpoint.url}/${'a-long-path/'.repeat(20)}`;
    const other = await api.createTarget(long, { eventTypes: ['order.paid'] });
    const failing = await api.send({ webhookId: other.webhookId }, { order: 18 });
    const paths = {
      overview: '',
      start: 'start',
      projects: 'projects',
      project: `projects/${projectId}`,
      app: `apps/${appId}`,
      webhooks: 'webhooks',
      'new-webhook': `webhooks/new?appId=${appId}`,
      webhook: `webhooks/${webhookId}`,
      'webhook-attempts': `webhooks/${other.webhookId}?tab=attempts`,
      'webhook-settings': `webhooks/${webhookId}?tab=settings`,
      'webhook-testing': `webhooks/${webhookId}?tab=testing`,
      'missing-webhook': 'webhooks/wh_00000000000000000000000000',
      messages: 'messages',
      'side-panel': `messages?open=${failing.messageId}`,
      message: `messages/${messageId}`,
      send: `messages/new?appId=${appId}`,
      failures: 'failures?range=1h',
      'api-keys': 'api-keys',
      audit: 'audit',
      circuits: 'circuits',
      resends: 'resends',
      'no-page': 'nothing/here',
    };
    const since = new Date(0).toISOString();
    const resend = await api.post(`/api/v1/apps/${appId}/resend-failed`, { since });
    const { id } = dataOf<{ id: string }>(resend, 202);
    pages = {
      url: `${posthorn.baseUrl}/dashboard/`,
      paths: new Map(Object.entries({ ...paths, resend: `resends/${id}` })),
      askNothing: ASK_NOTHING,
      words: WORDS,
    };
  }

  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    expect(await findFlaws(browser, pages)).toEqual([]);
  }, 480_000);

  it('of the first steps leads to what they made, and shows the call of each', async () => {
    const { page } = browser;
    await page.goto(pages.url);
    await browser.show({ ...WIDE, scheme: 'light' });
    await page.getByText('Median response time').waitFor();
    for (const [made, address] of Object.entries(MADE)) {
      await page.getByRole('link', { name: 'First steps' }).click();
      await page.getByRole('link', { name: `Open the ${made}` }).waitFor();
      expect(await page.getByRole('region', { name: / with curl$/ }).count()).toBe(5);
      await page.getByRole('link', { name: `Open the ${made}` }).click();
      await page.waitForURL(`**/dashboard/${address}*`);
    }
  });

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /** After the test of the console, where browsers report refused calls. */
  it.each(STATES)(
    'says what there is to say when it is %s',
    async (state) => {
      expect(await findFlawsIn(state, browser, pages)).toEqual([]);
    },
    240_000,
  );
});
