import { createApiClient, type ApiClient } from './api-client.ts';
import { ADMIN, type Posthorn } from './posthorn.ts';
import { runProgram } from './service-process.ts';

/** A company with a key of its own. */
export interface Company {
  companyId: string;
  apiKey: string;
  api: ApiClient;
}

/** One more company on a running Posthorn. */
export async function createCompany({ env, baseUrl }: Posthorn, name: string): Promise<Company> {
  const printed = await runProgram(ADMIN, ['company', 'create', name, '--json'], env);
  const { companyId, apiKey } = JSON.parse(printed) as { companyId: string; apiKey: string };
  return { companyId, apiKey, api: createApiClient(baseUrl, apiKey) };
}

/** As the first company, with the header that the contract requires for apps and the list of projects. */
export function withCompanyId({ baseUrl, apiKey, companyId }: Posthorn): ApiClient {
  return createApiClient(baseUrl, apiKey, { companyid: companyId });
}
