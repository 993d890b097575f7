import type { Page } from 'playwright-core';

/** Signs in with an API key, as a person does. */
export async function signIn(
  page: Page,
  { baseUrl, companyId, apiKey }: { baseUrl: string; companyId: string; apiKey: string },
): Promise<void> {
  await page.goto(`${baseUrl}/dashboard/`);
  await page.getByLabel('Company id').fill(companyId);
  await page.getByLabel(/^API key/).fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
}
