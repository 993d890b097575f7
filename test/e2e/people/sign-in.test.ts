import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { Browser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { startWithPeople, type WithPeople } from '../../support/local-people/start-with-people.ts';
import {
  choose,
  headingOf,
  open,
  signInAs,
  startPeopleBrowser,
  toIssuer,
} from '../../support/local-people/visitor.ts';

let people: WithPeople;
let browser: Browser;

beforeAll(async () => {
  people = await startWithPeople('contract');
  browser = await startPeopleBrowser(people);
}, 240_000);

beforeEach(async () => {
  await browser.page.context().clearCookies();
  await browser.page.goto('about:blank');
});

afterAll(async () => {
  await browser.close();
  await people.stop();
}, 120_000);

const heading = (name: string): Promise<void> => headingOf(browser.page, name);

describe('The sign-in page', () => {
  it('offers the issuer first, and a key behind a button', async () => {
    const { page } = browser;
    await open(page, people);
    await heading('Sign in to Posthorn');
    const button = page.getByRole('button', { name: `Sign in with ${people.issuerHost}` });
    await button.waitFor();
    expect(await page.getByLabel(/^API key/).count()).toBe(0);
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-sign-in');
    await page.getByRole('button', { name: 'Use an API key' }).click();
    await page.getByLabel(/^API key/).fill(people.apiKey);
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await heading('Overview');
    expect(await page.getByRole('region', { name: 'Signed in as' }).count()).toBe(0);
  });

  it('has no key where the gateway takes none', async () => {
    const { page } = browser;
    // As with OIDC_ONLY.
    await page.route('**/dashboard/api/sign-in', async (route) => {
      const response = await route.fetch();
      const json = (await response.json()) as { data: object };
      await route.fulfill({ response, json: { ...json, data: { ...json.data, apiKey: false } } });
    });
    await open(page, people);
    await page.getByRole('button', { name: `Sign in with ${people.issuerHost}` }).waitFor();
    expect(await page.getByRole('button', { name: 'Use an API key' }).count()).toBe(0);
    await page.unroute('**/dashboard/api/sign-in');
  });

  it.each([
    ['sign_in_expired', 'longer than ten minutes'],
    ['sign_in_refused', 'did not sign you in'],
    ['sign_in_unavailable', 'does not answer'],
    ['an-unknown-code', 'The sign-in began no session.'],
  ])('says why a sign-in began no session: %s', async (code, text) => {
    const { page } = browser;
    await open(page, people, `sign-in?error=${code}`);
    await page.getByRole('alert').getByText(text).waitFor();
    await page.getByText(code, { exact: true }).waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  it('shows no text of the address', async () => {
    const { page } = browser;
    await open(page, people, 'sign-in?error=no_role&error_description=Call+0900+1234');
    await page.getByRole('alert').getByText('You have no role').waitFor();
    expect(await page.getByText('0900').count()).toBe(0);
  });
});

describe('A person', () => {
  it.each([
    ['Ada', 'admin'],
    ['Sam', 'support'],
    ['Vic', 'viewer'],
  ] as const)('%s comes in as %s', async (name, role) => {
    const { page } = browser;
    await signInAs(page, people, name);
    await heading('Overview');
    const frame = page.getByRole('region', { name: 'Signed in as' });
    await frame.getByText(name, { exact: true }).waitFor();
    await frame.getByText(`Role: ${role}`).waitFor();
    expect(page.url()).toBe(`${people.baseUrl}/dashboard/`);
    await takePicture(page, `people-overview-${role}`);
  });

  it('without a role stays outside, and learns whom to ask', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Nobody');
    await heading('Sign in to Posthorn');
    await page.getByRole('alert').getByText('You have no role').waitFor();
    await page.getByText('Ask an admin').waitFor();
    await page.getByText('lunch').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-no-role');
    await open(page, people, 'messages');
    await heading('Sign in to Posthorn');
  });

  it('comes back to the page that was opened', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic', 'messages?status=pending&tag=order-17');
    await heading('Messages');
    expect(page.url()).toBe(`${people.baseUrl}/dashboard/messages?status=pending&tag=order-17`);
  });

  it('signs in in two tabs at the same time, which do not disturb each other', async () => {
    const { page } = browser;
    const tab = await page.context().newPage();
    await open(page, people, 'messages');
    await open(tab, people, 'failures');
    await toIssuer(page, people);
    await headingOf(page, 'Who are you?');
    await toIssuer(tab, people);
    await headingOf(tab, 'Who are you?');
    await choose(page, 'Vic');
    await heading('Messages');
    await choose(tab, 'Vic');
    await headingOf(tab, 'Failures');
    // The second session took the place of the first: the same person in the same company goes on.
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await heading('Webhooks');
    await tab.close();
  });
});

describe('An invitation', () => {
  async function invite(role: string): Promise<string> {
    const body = { role, name: 'Somebody new' };
    const answer = await people.api.post('/api/v1/invitations', body);
    return dataOf<{ url: string }>(answer, 201).url;
  }

  it('is made on the page of people, and lets whoever signs in with it come in', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Ada', 'people');
    await heading('People');
    await page.getByRole('button', { name: 'Invite a person' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite a person' });
    await dialog.getByLabel('Role').selectOption('support');
    await dialog.getByLabel('Name').fill('Nobody yet');
    await dialog.getByRole('button', { name: 'Make the invitation' }).click();
    const copy = dialog.getByRole('button', { name: /^Copy URL of the invitation / });
    const url = ((await copy.getAttribute('aria-label')) ?? '').split(' ').at(-1) ?? '';
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-invitation-made');
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(url);
    await heading('You are invited to Posthorn');
    expect(page.url()).not.toContain('#');
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-invited');
    await toIssuer(page, people);
    await choose(page, 'Nobody');
    await heading('Overview');
    await page.getByText('Role: support').waitFor();
  });

  it('is for whoever signs in with it, also where somebody else is signed in', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Sam');
    await heading('Overview');
    await page.goto(await invite('viewer'));
    await heading('You are invited to Posthorn');
  });

  it('opens once', async () => {
    const { page } = browser;
    const url = await invite('admin');
    await page.goto(url);
    await toIssuer(page, people);
    await choose(page, 'Vic');
    await heading('Overview');
    await page.getByText('Role: admin').waitFor();
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(url);
    await toIssuer(page, people);
    await page.getByRole('alert').getByText('This invitation was used already.').waitFor();
    await page.getByText('Ask the admin who invited you for another one.').waitFor();
  });
});

it('The pages send requests to the gateway only, and leave no error in the console', () => {
  expect(browser.faults()).toEqual([]);
});

it('The gateway has logged no secret, code, token and claim of them [security]', () => {
  expect(people.secrets.length).toBeGreaterThan(20);
  expect(people.leaks()).toEqual([]);
});
