import type { Page } from 'playwright-core';
import { eventually } from '../time/eventually.ts';
import { NARROW, WIDE, type Browser } from './browser.ts';
import { findBarriers, isTooLarge, takePicture } from './check-page.ts';
import { answerAs, type State } from './page-states.ts';

const SCHEMES = ['light', 'dark'] as const;

/** The pages of the dashboard, or of a portal. */
export interface Pages {
  /** Of the first page, with a slash at the end. */
  url: string;
  /** Name of a page, also for its pictures → its address behind that of the first page. */
  paths: ReadonlyMap<string, string>;
  /** Pages that show something without an answer. */
  askNothing: ReadonlySet<string>;
  /** What every other page says in a state; null where it says nothing of it. */
  words: Record<State, string | null>;
}

/**
 * Looks at each page wide and narrow, in light and in dark, and returns what is wrong. The dashboard is loaded once:
 * the browser would compile its scripts again for each page.
 */
export async function findFlaws(browser: Browser, { url, paths }: Pages): Promise<string[]> {
  const { page } = browser;
  const found: string[] = [];
  await page.goto(`${url}${NO_PAGE}`);
  for (const [name, path] of paths) {
    await browser.show({ ...WIDE, scheme: 'light' });
    await goTo(page, `${url}${NO_PAGE}`);
    await noPage(page).waitFor();
    await goTo(page, url + path);
    if (!name.endsWith('no-page')) await noPage(page).waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
    for (const scheme of SCHEMES) {
      await browser.show({ ...WIDE, scheme });
      await untilColoured(page, scheme);
      await takePicture(page, `${name}-wide-${scheme}`);
      const barriers = await findBarriers(page, scheme === 'dark');
      found.push(...barriers.map((each) => `${name} ${scheme}: ${each}`));
      if (await isTooLarge(page)) found.push(`${name} is too large`);
      await browser.show({ ...NARROW, scheme });
      await takePicture(page, `${name}-narrow-${scheme}`);
      if (await isTooLarge(page)) found.push(`${name} is too large on a narrow screen`);
    }
    // What is hidden on a wide screen, such as the names in cards.
    found.push(...(await findBarriers(page)).map((each) => `${name} narrow: ${each}`));
  }
  return found;
}

/** The page learns of the scheme from an event, and some of its colours change step by step. */
async function untilColoured(page: Page, scheme: string): Promise<void> {
  await eventually(`the page in ${scheme}`, async () => {
    const isSettled = await page.evaluate<boolean>(
      `document.documentElement.dataset.mantineColorScheme === '${scheme}' &&
       document.getAnimations().every((each) => !(each instanceof CSSTransition))`,
    );
    return isSettled;
  });
}

/** An address that no page has. Between two pages it tells the heading of the second one from that of the first. */
const NO_PAGE = 'nothing/here';
const noPage = (page: Page) =>
  page.getByRole('heading', { name: 'There is no such page', level: 1 });

/** Goes on within the page: nothing is loaded again but the data. */
async function goTo(page: Page, url: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(url)})`);
  await page.evaluate(`dispatchEvent(new PopStateEvent('popstate'))`);
}

/** Looks at each page in a state, and returns what is wrong. Throws when a page does not say what it should. */
export async function findFlawsIn(state: State, browser: Browser, pages: Pages): Promise<string[]> {
  const { url, paths, askNothing, words } = pages;
  const page = await browser.page.context().newPage();
  await page.clock.install();
  await answerAs(page, state);
  await page.setViewportSize(WIDE);
  await page.goto(`${url}${NO_PAGE}`);
  const found: string[] = [];
  for (const [name, path] of paths) {
    await goTo(page, url + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.clock.runFor(500);
    const word = words[state];
    if (word === null) await untilShown(page);
    else if (!askNothing.has(name)) await waitFor(page, word, name);
    await takePicture(page, `${name}-${state}`);
    if (await isTooLarge(page)) found.push(`${name} is too large`);
  }
  await page.close();
  return found;
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
