import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NARROW, startBrowser, WIDE, type Browser } from '../../support/browser/browser.ts';
import { findBarriers, isTooWide, takePicture } from '../../support/browser/check-page.ts';
import { signIn } from '../../support/browser/sign-in.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';

const VIEWS = [
  { name: 'wide-light', view: { ...WIDE, scheme: 'light' } },
  { name: 'wide-dark', view: { ...WIDE, scheme: 'dark' } },
  { name: 'narrow-light', view: { ...NARROW, scheme: 'light' } },
  { name: 'narrow-dark', view: { ...NARROW, scheme: 'dark' } },
] as const;

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
    await look('empty', ['', 'webhooks', 'messages', 'projects', 'failures', 'start']);
    await fill();
  }, 240_000);

  afterAll(async () => {
    await browser.close();
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  /** Takes pictures of pages that will be full later. */
  async function look(name: string, paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      await open(path);
      await takePicture(browser.page, `${name}-${path || 'overview'}`);
    }
  }

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
      'no-page': 'nothing/here',
    };
    for (const [name, path] of Object.entries(paths)) pages.set(name, path);
  }

  it.each(VIEWS)(
    'has no barrier, and fits, $name',
    async ({ name, view }) => {
      const found: string[] = [];
      await browser.show(view);
      for (const [pageName, path] of pages) {
        await open(path);
        await takePicture(browser.page, `${pageName}-${name}`);
        if (await isTooWide(browser.page)) found.push(`${pageName} is too wide`);
        found.push(...(await findBarriers(browser.page)).map((each) => `${pageName}: ${each}`));
      }
      expect(found).toEqual([]);
    },
    240_000,
  );

  it('asks no other origin, and leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });
});
