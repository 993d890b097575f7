import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { signIn, startBrowser, WIDE, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { findFlaws, findFlawsIn, type Pages } from '../../support/browser/look-at-pages.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { expireLinks } from '../../support/stores/expire-links.ts';

const SQUARE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><rect width="24" height="24"/></svg>';
const THEME = {
  name: 'Acme Pay',
  primaryColor: '#0b5394',
  logoUrl: `data:image/svg+xml;base64,${Buffer.from(SQUARE).toString('base64')}`,
};

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

const { posthorn } = useCompany('contract');
let endpoint: BusyEndpoint;
let browser: Browser;

beforeAll(async () => {
  endpoint = await startBusyEndpoint();
  browser = await startBrowser(posthorn.baseUrl);
}, 240_000);

afterAll(async () => {
  await browser.close();
  await endpoint.close();
}, 60_000);

interface Filled {
  projectId: string;
  appId: string;
  /** A webhook that works, and its message. */
  webhookId: string;
  messageId: string;
  /** A webhook of the same app whose endpoint refuses, with a long URL, and its message. */
  failingId: string;
  failedMessageId: string;
  resendId: string;
}

/** An app with one webhook that works and one that refuses, a message to each, and a resend. */
async function fillApp(): Promise<Filled> {
  const { api } = posthorn;
  endpoint.answerWith(200);
  const { projectId, appId, webhookId } = await api.createTarget(endpoint.url);
  const longest = { uid: appId.padEnd(128, 'u'), metadata: { ['k'.repeat(40)]: 'v'.repeat(500) } };
  for (const path of [`projects/${projectId}`, `apps/${appId}`, `webhooks/${webhookId}`]) {
    dataOf(await api.put(`/api/v1/${path}`, longest, { companyid: posthorn.companyId }));
  }
  const type = { name: 'order.paid', group: 'Orders', example: { order: 17 } };
  const described = { ...type, description: 'An order was paid.', schema: { type: 'object' } };
  dataOf(await api.post(`/api/v1/projects/${projectId}/event-types`, described), 201);
  const own = { tags: ['order-17', 't'.repeat(128)], externalId: 'e'.repeat(256) };
  const orderingKey = 'o'.repeat(256);
  const { messageId } = await api.send(
    { webhookId, ...own, orderingKey },
    { order: 17, text: 'ä'.repeat(400) },
  );
  endpoint.answerWith(503);
  const url = `${endpoint.url}/${'a-long-path/'.repeat(20)}`;
  const fields = { appId, url, eventTypes: ['order.paid'] };
  const { id: failingId } = dataOf<{ id: string }>(await api.post('/api/v1/webhooks', fields), 201);
  const { messageId: failedMessageId } = await api.send({ webhookId: failingId }, { order: 18 });
  const since = new Date(0).toISOString();
  const resend = await api.post(`/api/v1/apps/${appId}/resend-failed`, { since });
  const { id: resendId } = dataOf<{ id: string }>(resend, 202);
  return { projectId, appId, webhookId, messageId, failingId, failedMessageId, resendId };
}

/** The pages that a group of the navigation leads to. */
async function pagesOf(group: string): Promise<string[]> {
  await browser.show({ ...WIDE, scheme: 'light' });
  return browser.page.getByRole('list', { name: group }).getByRole('link').allTextContents();
}

describe('Every page of the dashboard', () => {
  let pages: Pages;

  beforeAll(async () => {
    const filled = await fillApp();
    const { projectId, appId, webhookId, messageId, failingId } = filled;
    const paths = {
      overview: '',
      start: 'start',
      projects: 'projects',
      project: `projects/${projectId}`,
      app: `apps/${appId}`,
      'event-types': `event-types?projectId=${projectId}`,
      'event-type': `event-types?projectId=${projectId}&name=order.paid`,
      webhooks: 'webhooks',
      'new-webhook': `webhooks/new?appId=${appId}`,
      webhook: `webhooks/${webhookId}`,
      'webhook-attempts': `webhooks/${failingId}?tab=attempts`,
      'webhook-settings': `webhooks/${webhookId}?tab=settings`,
      'webhook-testing': `webhooks/${webhookId}?tab=testing`,
      'missing-webhook': 'webhooks/wh_00000000000000000000000000',
      messages: 'messages',
      'side-panel': `messages?open=${filled.failedMessageId}`,
      message: `messages/${messageId}`,
      send: `messages/new?appId=${appId}`,
      undelivered: 'deliveries',
      cancelled: 'deliveries?status=cancelled',
      failures: 'failures?range=1h',
      'api-keys': 'api-keys',
      audit: 'audit',
      circuits: 'circuits',
      resends: 'resends',
      resend: `resends/${filled.resendId}`,
      'no-page': 'nothing/here',
    };
    pages = {
      url: `${posthorn.baseUrl}/dashboard/`,
      paths: new Map(Object.entries(paths)),
      askNothing: new Set(['start', 'new-webhook', 'send', 'no-page']),
      words: WORDS,
    };
    await signIn(browser.page, posthorn);
  }, 120_000);

  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    expect(await findFlaws(browser, pages)).toEqual([]);
  }, 480_000);

  it('is in one of three groups', async () => {
    const watch = ['Overview', 'Messages', 'Undelivered', 'Failures', 'Circuits', 'Resends'];
    expect(await pagesOf('Watch')).toEqual(watch);
    const configure = ['Webhooks', 'Event types', 'Projects and apps', 'First steps'];
    expect(await pagesOf('Configure')).toEqual(configure);
    expect(await pagesOf('Account')).toEqual(['API keys', 'Audit log']);
  });

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

  it('sends requests to its own origin only, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /**
   * The states are those of `QueryView`, through which every page shows what it reads. After the test of the console, where
   * browsers report refused calls.
   */
  it.each(['empty', 'loading', 'failed', 'forbidden'] as const)(
    'shows its text for the state %s: a list, an object, and an object with lists',
    async (state) => {
      const some = ['webhooks', 'webhook', 'overview'].map(
        (name) => [name, pages.paths.get(name) ?? ''] as const,
      );
      const flaws = await findFlawsIn(state, browser, { ...pages, paths: new Map(some) });
      expect(flaws).toEqual([]);
    },
  );

  it('fits with lists of a hundred and the longest names', async () => {
    expect(await findFlawsIn('crowded', browser, pages)).toEqual([]);
  }, 240_000);
});

describe('Every page of the portal', () => {
  let appId: string;
  let pages: Pages;

  beforeAll(async () => {
    const filled = await fillApp();
    const { webhookId, messageId, failingId } = filled;
    ({ appId } = filled);
    const paths = {
      'event-types': 'event-types',
      'event-type': 'event-types?name=order.paid',
      webhooks: 'webhooks',
      'new-webhook': 'webhooks/new',
      webhook: `webhooks/${webhookId}`,
      'webhook-attempts': `webhooks/${failingId}?tab=attempts`,
      'webhook-settings': `webhooks/${webhookId}?tab=settings`,
      'webhook-testing': `webhooks/${webhookId}?tab=testing`,
      'missing-webhook': 'webhooks/wh_00000000000000000000000000',
      messages: 'messages',
      'side-panel': `messages?open=${filled.failedMessageId}`,
      message: `messages/${messageId}`,
      resends: 'resends',
      resend: `resends/${filled.resendId}`,
      'no-page': 'api-keys',
    };
    const named = Object.entries(paths).map(([name, path]) => [`portal-${name}`, path] as const);
    pages = {
      url: `${posthorn.baseUrl}/dashboard/portal/${posthorn.companyId}/`,
      paths: new Map(named),
      askNothing: new Set(['portal-new-webhook', 'portal-no-page']),
      words: { ...WORDS, forbidden: 'Ask the site that gave you the link for one that allows it.' },
    };
    await browser.page.context().clearCookies();
    await browser.page.goto(await makeLink());
    await browser.page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
  }, 120_000);

  async function makeLink(): Promise<string> {
    const capabilities = ['view', 'manage', 'secrets', 'resend'];
    const body = { expiresInSeconds: 3_600, capabilities, theme: THEME };
    const answer = await posthorn.api.post(`/api/v1/apps/${appId}/portal-links`, body);
    return dataOf<{ url: string }>(answer, 201).url;
  }

  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    expect(await findFlaws(browser, pages)).toEqual([]);
  }, 240_000);

  it('sends requests to its own origin only, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  it('is in a group that has a page for visitors', async () => {
    expect(await pagesOf('Watch')).toEqual(['Messages', 'Undelivered', 'Resends']);
    expect(await pagesOf('Configure')).toEqual(['Webhooks', 'Event types']);
    expect(await pagesOf('Account')).toEqual([]);
  });

  it('tells a visitor without the right to ask the site', async () => {
    const webhooks = new Map([['portal-webhooks', 'webhooks']]);
    expect(await findFlawsIn('forbidden', browser, { ...pages, paths: webhooks })).toEqual([]);
  });

  it('is not shown by an expired link, which shows the reason', async () => {
    const { page } = browser;
    await page.context().clearCookies();
    const url = await makeLink();
    await expireLinks(posthorn.env, posthorn.companyId);
    await page.goto('about:blank');
    await page.goto(url);
    await page.getByRole('heading', { name: 'This link does not open the portal' }).waitFor();
    await page.getByText('This link has expired.').waitFor();
    await page.getByText('link_expired').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'portal-expired');
  });
});
