import { createApiClient, type ApiClient } from '../api/api-client.ts';
import { ADMIN, type OwnCompany } from './posthorn.ts';
import { runProgram } from './service-process.ts';
import { setUp } from './setup.ts';

/** A company with a key of its own. */
export interface Company {
  companyId: string;
  apiKey: string;
  api: ApiClient;
}

/** Creates one more company on a running Posthorn. */
export async function createCompany(
  { env, baseUrl }: Pick<OwnCompany, 'env' | 'baseUrl'>,
  name: string,
): Promise<Company> {
  const { companyId, apiKey } = await setUp({ env, company: name, isNew: false });
  return { companyId, apiKey, api: createApiClient(baseUrl, apiKey) };
}

/** As the first company, with the header that apps and the list of projects require (docs/contract.md C4.3). */
export function withCompanyId({ baseUrl, apiKey, companyId }: OwnCompany): ApiClient {
  return createApiClient(baseUrl, apiKey, { companyid: companyId });
}

/** Returns the token of a link that opens the dashboard of the company once. */
export async function makeSignInLink({ companyId, baseUrl, env }: OwnCompany): Promise<string> {
  const args = ['dashboard-link', companyId, '--url', baseUrl, '--json'];
  const { url } = JSON.parse(await runProgram(ADMIN, args, env)) as { url: string };
  const page = `${baseUrl}/dashboard/sign-in#`;
  if (!url.startsWith(page)) throw new Error(`not a link to ${page}`);
  return url.slice(page.length);
}
