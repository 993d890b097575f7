import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { dataOf } from '../../support/api/expect-answers.ts';
import { NARROW, startBrowser, WIDE, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, isTooLarge, takePicture } from '../../support/browser/check-page.ts';
import { answerAs, STATES, type State } from '../../support/browser/page-states.ts';
import { signIn } from '../../support/browser/sign-in.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';

const SCHEMES = ['light', 'dark'] as const;
/** Pages that show something without an answer. */
const ASK_NOTHING = new Set(['start', 'new-webhook', 'send', 'no-page']);

describe('Every page of the dashboard', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;
  let browser: Browser;
  /** Name of a page → its address below /dashboard. */
  const pages = new Map<string, string>();

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

  async function open(path: string): Promise<void> {
    const { page } = browser;
    await page.goto(`${posthorn.baseUrl}/dashboard/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
  }

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
    for (const [name, path] of Object.entries(paths)) pages.set(name, path);
    const since = new Date(0).toISOString();
    const resend = await api.post(`/api/v1/apps/${appId}/resend-failed`, { since });
    pages.set('resend', `resends/${dataOf<{ id: string }>(resend, 202).id}`);
  }

  /** Each page is opened once, and looked at in each form: that is what takes the time. */
  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    const { page } = browser;
    const found: string[] = [];
    for (const [name, path] of pages) {
      await browser.show({ ...WIDE, scheme: 'light' });
      await open(path);
      for (const scheme of SCHEMES) {
        await browser.show({ ...WIDE, scheme });
        await takePicture(page, `${name}-wide-${scheme}`);
        found.push(...(await findBarriers(page)).map((each) => `${name} ${scheme}: ${each}`));
        if (await isTooLarge(page)) found.push(`${name} is too large`);
        await browser.show({ ...NARROW, scheme });
        await takePicture(page, `${name}-narrow-${scheme}`);
        if (await isTooLarge(page)) found.push(`${name} is too large on a narrow screen`);
      }
      // What is hidden on a wide screen, such as the names in cards.
      found.push(...(await findBarriers(page)).map((each) => `${name} narrow: ${each}`));
    }
    expect(found).toEqual([]);
  }, 480_000);

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /** After the test of the console, where browsers report refused calls. */
  it.each(STATES)(
    'says what there is to say when it is %s',
    async (state) => {
      const page = await browser.page.context().newPage();
      await page.clock.install();
      await answerAs(page, state);
      await page.setViewportSize(WIDE);
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.goto(`${posthorn.baseUrl}/dashboard/nothing/here`);
      const found: string[] = [];
      for (const [name, path] of pages) {
        await goTo(page, path);
        const word = WORDS[state];
        if (word === null) await untilShown(page);
        else if (!ASK_NOTHING.has(name)) await waitFor(page, word, name);
        await takePicture(page, `${name}-${state}`);
        if (await isTooLarge(page)) found.push(`${name} is too large`);
      }
      await page.close();
      expect(found).toEqual([]);
    },
    240_000,
  );

  /** Goes on within the page: nothing is loaded again but the data. */
  async function goTo(page: Page, path: string): Promise<void> {
    const address = JSON.stringify(`${posthorn.baseUrl}/dashboard/${path}`);
    await page.evaluate(`history.pushState(null, '', ${address})`);
    await page.evaluate(`dispatchEvent(new PopStateEvent('popstate'))`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.clock.runFor(500);
  }

  /** A page asks twice more before it says that a call failed. */
  async function waitFor(page: Page, text: string, name: string): Promise<void> {
    await eventually(`“${text}” on ${name}`, async () => {
      await page.clock.runFor(1_000);
      return (await page.getByText(text).count()) > 0;
    });
  }

  async function untilShown(page: Page): Promise<void> {
    await eventually('what was awaited', async () => {
      await page.clock.runFor(100);
      const awaited = page.getByText('Waiting for').or(page.locator('[aria-busy=true]'));
      return (await awaited.count()) === 0;
    });
  }
});

const WORDS: Record<State, string | null> = {
  empty: null,
  loading: 'Waiting for',
  failed: 'Could not load',
  forbidden: 'Sign in with an API key that has the scope.',
  crowded: null,
};
