import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import { type Browser, startBrowser } from '../../support/browser/browser.ts';
import { findBarriers, takePicture } from '../../support/browser/check-page.ts';
import { createCompany } from '../../support/process/companies.ts';
import { startWithPeople, type WithPeople } from '../../support/local-people/start-with-people.ts';
import {
  choose,
  headingOf,
  open,
  signInAs,
  startPeopleBrowser,
  toIssuer,
} from '../../support/local-people/visitor.ts';
import { eventually } from '../../support/time/eventually.ts';

const ENDED = 'Your session has ended: its time is over, your role has changed';

let people: WithPeople;
let browser: Browser;

beforeAll(async () => {
  people = await startWithPeople('contract', { OIDC_SESSION: '15m' });
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

async function signOut(): Promise<void> {
  await browser.page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await heading('You are signed out');
}

interface Listed {
  id: string;
  name: string;
}

async function idOf(name: string): Promise<string> {
  const all = dataOf<Listed[]>(await people.api.get('/api/v1/people'));
  return all.find((each) => each.name === name)?.id ?? '';
}

describe('Signing out', () => {
  it('shows both ways out, and does not sign in again by itself', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic', 'messages');
    await heading('Messages');
    await signOut();
    await page.getByRole('link', { name: `Sign out of ${people.issuerHost} too` }).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-signed-out');
    await page.reload();
    await heading('Sign in to Posthorn');
  });

  it('and in again has the issuer ask who it is, also where it knows', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic', 'messages');
    await heading('Messages');
    await signOut();
    await page.getByRole('button', { name: 'Sign in again' }).click();
    await choose(page, 'Sam');
    await heading('Messages');
    await page.getByText('Role: support').waitFor();
  });

  it('of the issuer too leads back to the sign-in page, from which the issuer asks again', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic');
    await heading('Overview');
    await signOut();
    await page.getByRole('link', { name: `Sign out of ${people.issuerHost} too` }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading('Sign in to Posthorn');
    expect(page.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\//);
    await toIssuer(page, people);
    await heading('Who are you?');
  });

  it('everywhere ends the session of another browser', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic');
    await heading('Overview');
    const other = await startBrowser(people.baseUrl, people.issuer.url);
    await signInAs(other.page, people, 'Vic', 'projects');
    await headingOf(other.page, 'Projects and apps');
    await other.page.getByText('Live: new attempts').waitFor();
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await heading('You are signed out');
    await headingOf(other.page, 'Sign in to Posthorn');
    await other.page.getByRole('status').getByText(ENDED).waitFor();
    await other.close();
  });
});

describe('A session of a person', () => {
  it('ends when the person signs out at the issuer, by its back channel', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic', 'projects');
    await heading('Projects and apps');
    await page.getByText('Live: new attempts').waitFor();
    const tab = await page.context().newPage();
    await tab.goto(`${people.issuer.url}/session/end`);
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await headingOf(tab, 'You are signed out');
    await tab.close();
    await heading('Sign in to Posthorn');
    await page.getByRole('status').getByText(ENDED).waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  it('is listed on the page of people, which ends it, disables the person, and allows them again', async () => {
    const { page } = browser;
    const other = await startBrowser(people.baseUrl, people.issuer.url);
    await signInAs(other.page, people, 'Vic', 'projects');
    await headingOf(other.page, 'Projects and apps');
    await other.page.getByText('Live: new attempts').waitFor();
    await signInAs(page, people, 'Ada', 'people');
    await heading('People');
    await page.getByRole('link', { name: 'Vic' }).click();
    const panel = page.getByRole('dialog', { name: 'Person', exact: true });
    await panel.getByText('viewer: sees everything but secrets').waitFor();
    await panel.getByRole('table').getByText('127.0.0.1').first().waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await takePicture(page, 'people-person');
    await panel.getByRole('button', { name: 'Disable Vic' }).click();
    await page
      .getByRole('dialog', { name: 'Disable person “Vic”?' })
      .getByRole('button', { name: 'Disable' })
      .click();
    await headingOf(other.page, 'Sign in to Posthorn');
    await panel.getByText('This person is not signed in.').waitFor();
    await toIssuer(other.page, people);
    await other.page.getByRole('alert').getByText('An admin has disabled your access.').waitFor();
    await panel.getByRole('button', { name: 'Allow again Vic' }).click();
    await page
      .getByRole('dialog', { name: 'Allow again person “Vic”?' })
      .getByRole('button', { name: 'Allow again' })
      .click();
    await panel.getByRole('button', { name: 'Disable Vic' }).waitFor();
    await toIssuer(other.page, people);
    await headingOf(other.page, 'Overview');
    await other.close();
  });

  it('ends when the role of its group changes, and the next one has the new role', async () => {
    const { page } = browser;
    const other = await startBrowser(people.baseUrl, people.issuer.url);
    await signInAs(other.page, people, 'Vic', 'projects');
    await headingOf(other.page, 'Projects and apps');
    await other.page.getByText('Live: new attempts').waitFor();
    await signInAs(page, people, 'Ada', 'people');
    await heading('People');
    await page.getByLabel('Role of group 3').selectOption('support');
    await page.getByRole('button', { name: 'Save the groups' }).click();
    await headingOf(other.page, 'Sign in to Posthorn');
    await toIssuer(other.page, people);
    await other.page.getByText('Role: support').waitFor();
    await other.close();
    dataOf(await people.api.put('/api/v1/people-settings', { groups: people.roles }));
  });

  it('can be renewed in its last five minutes, which leads back to the same page', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Vic', 'messages?tag=order-17');
    await heading('Messages');
    expect(await page.getByText('Your session ends soon').count()).toBe(0);
    const tab = await page.context().newPage();
    await tab.clock.install();
    await open(tab, people, 'messages?tag=order-17');
    await headingOf(tab, 'Messages');
    await tab.clock.fastForward('11:00');
    await tab.getByText('Your session ends soon').waitFor();
    await tab.getByText('It ends in 4 minutes.').waitFor();
    expect(await findBarriers(tab)).toEqual([]);
    await takePicture(tab, 'people-renewal');
    const before = await sessionCookie();
    await tab.getByRole('button', { name: 'Renew the session' }).click();
    await eventually('another session', async () => (await sessionCookie()) !== before);
    await headingOf(tab, 'Messages');
    expect(tab.url()).toBe(`${people.baseUrl}/dashboard/messages?tag=order-17`);
    await tab.close();
  });

  async function sessionCookie(): Promise<string | undefined> {
    const cookies = await browser.page.context().cookies(people.baseUrl);
    return cookies.find(({ name }) => name.includes('session') && name.startsWith('posthorn'))
      ?.value;
  }

  it('goes on in another company of the person, with the role there', async () => {
    const { page } = browser;
    const company = await createCompany(people, 'Second');
    const groups = [{ group: people.groupOf('observers'), role: 'admin' }];
    dataOf(await company.api.put('/api/v1/people-settings', { groups }));
    await signInAs(page, people, 'Vic', 'messages');
    await page.getByText(/^Role: /).waitFor();
    await page.getByLabel('Company').selectOption({ label: 'Second' });
    await heading('Overview');
    await page.getByText('Role: admin').waitFor();
    await page.getByRole('banner').getByText('Second').waitFor();
    await takePicture(page, 'people-second-company');
    expect(await findBarriers(page)).toEqual([]);
    await page.reload();
    await page.getByText('Role: admin').waitFor();
    await page.getByLabel('Company').selectOption({ label: 'Test' });
    await page.getByText('Role: viewer').waitFor();
  });
});

describe('Somebody who was removed', () => {
  it('comes in again by a group, as a new person', async () => {
    const { page } = browser;
    await signInAs(page, people, 'Sam');
    await heading('Overview');
    const before = await idOf('Sam');
    expect(before).toMatch(/^usr_/);
    await page.context().clearCookies();
    await signInAs(page, people, 'Ada', `people?open=${before}`);
    const panel = page.getByRole('dialog', { name: 'Person', exact: true });
    await panel.getByRole('button', { name: 'Remove Sam' }).click();
    await page
      .getByRole('dialog', { name: 'Remove person “Sam”?' })
      .getByRole('button', { name: 'Remove' })
      .click();
    await panel.waitFor({ state: 'detached' });
    expect(await idOf('Sam')).toBe('');
    await signInAs(page, people, 'Sam');
    await heading('Overview');
    expect(await idOf('Sam')).not.toBe(before);
  });
});

it('The pages leave no error in the console', () => {
  expect(browser.faults()).toEqual([]);
});

it('The gateway has logged no secret, code, token and claim of them [security]', () => {
  expect(people.secrets.length).toBeGreaterThan(20);
  expect(people.leaks()).toEqual([]);
});
