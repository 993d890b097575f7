import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { Browser } from '../../support/browser/browser.ts';
import { findFlaws, findFlawsIn, type Pages } from '../../support/browser/look-at-pages.ts';
import { startWithPeople, type WithPeople } from '../../support/local-people/start-with-people.ts';
import { headingOf, signInAs, startPeopleBrowser } from '../../support/local-people/visitor.ts';

let people: WithPeople;
let browser: Browser;
let pages: Pages;

beforeAll(async () => {
  people = await startWithPeople('contract');
  browser = await startPeopleBrowser(people);
  const invitation = {
    role: 'support',
    name: 'N'.repeat(100),
    email: `${'e'.repeat(60)}@example.com`,
  };
  dataOf(await people.api.post('/api/v1/invitations', invitation), 201);
  await signInAs(browser.page, people, 'Ada');
  await headingOf(browser.page, 'Overview');
  const [ada] = dataOf<{ id: string }[]>(await people.api.get('/api/v1/people'));
  pages = {
    url: `${people.baseUrl}/dashboard/`,
    paths: new Map([
      ['people', 'people'],
      ['people-open', `people?open=${ada?.id ?? ''}`],
    ]),
    askNothing: new Set(),
    words: {
      empty: null,
      loading: 'Waiting for',
      failed: 'Could not load',
      forbidden: 'Your role does not include it.',
      crowded: null,
    },
  };
}, 240_000);

afterAll(async () => {
  await browser.close();
  await people.stop();
}, 120_000);

describe('The page of people', () => {
  it('has no barrier, and fits, in light and in dark, wide and narrow', async () => {
    expect(await findFlaws(browser, pages)).toEqual([]);
  }, 240_000);

  it('leaves no error in the console', () => {
    expect(browser.faults()).toEqual([]);
  });

  /** After the test of the console, where browsers report refused calls. */
  it.each(['empty', 'loading', 'failed', 'forbidden', 'crowded'] as const)(
    'shows its text for the state %s',
    async (state) => {
      const list = new Map([['people', 'people']]);
      expect(await findFlawsIn(state, browser, { ...pages, paths: list })).toEqual([]);
    },
    120_000,
  );
});
