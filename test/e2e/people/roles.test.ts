import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { Browser } from '../../support/browser/browser.ts';
import { startWithPeople, type WithPeople } from '../../support/local-people/start-with-people.ts';
import {
  headingOf,
  type Name,
  open,
  signInAs,
  startPeopleBrowser,
} from '../../support/local-people/visitor.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';

let people: WithPeople;
let endpoint: BusyEndpoint;
let browser: Browser;
let target: { projectId: string; appId: string; webhookId: string };
let messageId: string;

beforeAll(async () => {
  endpoint = await startBusyEndpoint();
  people = await startWithPeople('contract-after-retries');
  browser = await startPeopleBrowser(people);
  endpoint.answerWith(500);
  target = await people.api.createTarget(endpoint.url);
  ({ messageId } = await people.api.send({ appId: target.appId }, { order: 17 }));
}, 240_000);

afterAll(async () => {
  await browser.close();
  await people.stop();
  await endpoint.close();
}, 120_000);

const ROLES = [
  ['Vic', 'viewer'],
  ['Sam', 'support'],
  ['Ada', 'admin'],
] as const;

type Role = (typeof ROLES)[number][1];

/** A page, its heading, and the roles that are offered each of its buttons and links. */
interface PageOfRoles {
  path: () => string;
  heading: () => string;
  offers: Record<string, readonly Role[]>;
}

const HELPERS: readonly Role[] = ['support', 'admin'];
const ADMINS: readonly Role[] = ['admin'];

const PAGES: Record<string, PageOfRoles> = {
  messages: {
    path: () => 'messages',
    heading: () => 'Messages',
    offers: { 'Send a message': HELPERS },
  },
  'a message': {
    path: () => `messages/${messageId}`,
    heading: () => 'Message',
    offers: { Resend: HELPERS, 'Erase payload': HELPERS },
  },
  'exhausted deliveries': {
    // The gateway refuses a filter that selects everything.
    path: () => `deliveries?status=exhausted&webhookId=${target.webhookId}`,
    heading: () => 'Undelivered',
    offers: { 'Resend all that match': HELPERS },
  },
  webhooks: {
    path: () => 'webhooks',
    heading: () => 'Webhooks',
    offers: { 'Create webhook': ADMINS },
  },
  'a webhook': {
    path: () => `webhooks/${target.webhookId}`,
    heading: () => endpoint.url,
    offers: {
      'Hold deliveries': HELPERS,
      'Cancel pending deliveries': HELPERS,
      'Show secret': ADMINS,
    },
  },
  projects: {
    path: () => 'projects',
    heading: () => 'Projects and apps',
    offers: { 'Create project': ADMINS },
  },
  'an app': {
    path: () => `apps/${target.appId}`,
    heading: () => 'App',
    offers: {
      'Send a message': HELPERS,
      'Hold deliveries': HELPERS,
      'Create webhook': ADMINS,
      'Delete app': ADMINS,
    },
  },
  'API keys': {
    path: () => 'api-keys',
    heading: () => 'API keys',
    offers: { 'Create API key': ADMINS },
  },
};

const WATCH = ['Overview', 'Messages', 'Undelivered', 'Failures', 'Circuits', 'Resends'];
const NAVIGATION: Record<Role, Record<string, string[]>> = {
  viewer: { Watch: WATCH, Account: ['API keys'] },
  support: { Watch: WATCH, Account: ['API keys'] },
  admin: { Watch: WATCH, Account: ['API keys', 'People', 'Audit log'] },
};

/** Pages that a role does not open, with the role that does. */
const CLOSED: Record<Role, Record<string, string>> = {
  viewer: {
    'messages/new': 'support or admin',
    'webhooks/new': 'admin',
    people: 'admin',
    audit: 'admin',
  },
  support: { 'webhooks/new': 'admin', people: 'admin', audit: 'admin' },
  admin: {},
};

describe.each(ROLES)('%s with the role %s', (name: Name, role) => {
  beforeAll(async () => {
    await browser.page.goto('about:blank');
    await signInAs(browser.page, people, name);
    await headingOf(browser.page, 'Overview');
  }, 120_000);

  it('sees the pages of the role in the navigation', async () => {
    for (const [group, names] of Object.entries(NAVIGATION[role])) {
      const list = browser.page.getByRole('list', { name: group });
      await list.getByRole('link', { name: names.at(-1) ?? '', exact: true }).waitFor();
      expect(await list.getByRole('link').allTextContents()).toEqual(names);
    }
  });

  it.each(Object.entries(PAGES))(
    'is offered the actions of the role on the page of %s',
    async (_page, shown) => {
      const { path, heading, offers } = shown;
      await open(browser.page, people, path());
      await browser.page.getByRole('heading', { level: 1, name: heading() }).waitFor();
      await browser.page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
      const main = browser.page.getByRole('main');
      // Actions of other roles would come with the content, so the test looks for them once it is there.
      for (const [action, roles] of Object.entries(offers)) {
        const control = main
          .getByRole('button', { name: action, exact: true })
          .or(main.getByRole('link', { name: action, exact: true }));
        if (roles.includes(role)) await control.first().waitFor();
        else expect(await control.count()).toBe(0);
      }
      expect(await main.getByRole('alert').count()).toBe(0);
    },
  );

  it('is not shown pages of another role, and learns which role opens them', async () => {
    const { page } = browser;
    for (const [path, needed] of Object.entries(CLOSED[role])) {
      await open(page, people, path);
      await headingOf(page, 'This page is not open to you');
      const why = `Your role is ${role}, and this page is for the role ${needed}.`;
      await page.getByText(why).waitFor();
    }
  });
});

describe('An action of a person', () => {
  it('resends as support, under the name of the person', async () => {
    const { page } = browser;
    await page.goto('about:blank');
    await signInAs(page, people, 'Sam', `messages/${messageId}`);
    await page.getByRole('article').getByText('exhausted', { exact: true }).waitFor();
    endpoint.answerWith(200);
    await page.getByRole('button', { name: 'Resend', exact: true }).click();
    await page.getByRole('article').getByText('delivered', { exact: true }).waitFor();
  });

  it('holds and resumes as support', async () => {
    const { page } = browser;
    await open(page, people, `webhooks/${target.webhookId}`);
    await page.getByRole('button', { name: 'Hold deliveries' }).click();
    const dialog = page.getByRole('dialog', { name: 'Hold deliveries' });
    await dialog.getByRole('button', { name: 'Hold deliveries' }).click();
    await page.getByText('Asked for by').waitFor();
    await page.getByRole('button', { name: 'Resume deliveries' }).click();
    await page
      .getByRole('dialog', { name: 'Resume deliveries' })
      .getByRole('button', { name: 'Resume deliveries' })
      .click();
    await page.getByText('Asked for by').waitFor({ state: 'detached' });
  });

  it('makes an API key as admin, which names its maker', async () => {
    const { page } = browser;
    await page.goto('about:blank');
    await signInAs(page, people, 'Ada', 'api-keys');
    await headingOf(page, 'API keys');
    await page.getByRole('button', { name: 'Create API key' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create an API key' });
    await dialog.getByLabel('Name').fill('Key of Ada');
    await dialog.getByRole('button', { name: 'Create API key' }).click();
    await dialog.getByText('It is shown once').waitFor();
    await page.keyboard.press('Escape');
    const row = page.getByRole('row').filter({ hasText: 'Key of Ada' });
    await row.getByText('Ada', { exact: true }).waitFor();
    await open(page, people, 'people');
    await page.getByRole('link', { name: 'Ada', exact: true }).click();
    await page.getByRole('link', { name: '1: show the API keys' }).click();
    await headingOf(page, 'API keys');
    await row.waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'phk_' }).count()).toBe(1);
  });

  it('is in the audit log under the name of the person, which the page filters by', async () => {
    const { page } = browser;
    await open(page, people, 'audit');
    await headingOf(page, 'Audit log');
    const held = page.getByRole('row').filter({ hasText: 'Webhook put on hold' });
    await held.getByText('Sam', { exact: true }).waitFor();
    await held.getByRole('link', { name: 'Show only what Sam did' }).click();
    await page.waitForURL(/actor=usr_/);
    await page
      .getByRole('row')
      .filter({ hasText: 'API key created' })
      .waitFor({ state: 'detached' });
    await held.waitFor();
  });

  it('that changes the roles of groups is shown there as people write them', async () => {
    const { page } = browser;
    dataOf(await people.api.put('/api/v1/people-settings', { groups: people.roles }));
    const groups = [...people.roles, { group: 'night-shift', role: 'support' }];
    dataOf(await people.api.put('/api/v1/people-settings', { groups }));
    await open(page, people, 'audit');
    const changed = page.getByRole('row').filter({ hasText: 'Roles of groups changed' });
    await changed.getByText('night-shift=support').waitFor();
    expect(await changed.getByText('{').count()).toBe(0);
  });
});

it('The pages leave no error in the console', () => {
  expect(browser.faults()).toEqual([]);
});

it('The gateway has logged no secret, code, token and claim of them [security]', () => {
  expect(people.secrets.length).toBeGreaterThan(10);
  expect(people.leaks()).toEqual([]);
});
