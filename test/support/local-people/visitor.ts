import type { Page } from 'playwright-core';
import { type Browser, startBrowser, WIDE } from '../browser/browser.ts';
import type { WithPeople } from './start-with-people.ts';

export type Name = 'Ada' | 'Sam' | 'Vic' | 'Nobody';

/** Starts Chromium for a dashboard and its issuer. Without motion: what is still fading in has too little contrast. */
export async function startPeopleBrowser({
  baseUrl,
  issuer,
  secrets,
}: WithPeople): Promise<Browser> {
  const browser = await startBrowser(baseUrl, issuer.url);
  browser.page.context().on('request', (request) => {
    const { searchParams } = new URL(request.url());
    secrets.push(...SECRET_PARAMETERS.flatMap((name) => searchParams.get(name) ?? []));
  });
  await browser.show({ ...WIDE, scheme: 'light' });
  return browser;
}

const SECRET_PARAMETERS = ['code', 'state', 'nonce', 'id_token_hint'];

export const headingOf = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { name, level: 1, exact: true }).waitFor();

/** Opens a page of the dashboard. */
export async function open(page: Page, { baseUrl }: WithPeople, path = ''): Promise<void> {
  await page.goto(`${baseUrl}/dashboard/${path}`);
}

/** Leaves the sign-in page for the issuer. */
export async function toIssuer(page: Page, { issuerHost }: WithPeople): Promise<void> {
  await page.getByRole('button', { name: `Sign in with ${issuerHost}` }).click();
}

/** Says at the issuer who it is; the issuer leads back to the dashboard. */
export async function choose(page: Page, name: Name): Promise<void> {
  await headingOf(page, 'Who are you?');
  await page.getByRole('button', { name: new RegExp(`^${name} `) }).click();
}

/** Signs in as one of the people, in a browser that neither dashboard nor issuer know. */
export async function signInAs(
  page: Page,
  people: WithPeople,
  name: Name,
  path = '',
): Promise<void> {
  await page.context().clearCookies();
  await open(page, people, path);
  await toIssuer(page, people);
  await choose(page, name);
}
