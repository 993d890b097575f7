import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { AccountStore } from '@posthorn/platform/mongo/accounts/accounts.ts';
import { makeApiKey } from '@posthorn/platform/mongo/accounts/make-api-key.ts';

export interface CompanyDeps {
  accounts: AccountStore;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Makes a company with a first API key; the key is shown here and never again. */
export async function createCompany(
  deps: CompanyDeps,
  name: string,
): Promise<{ companyId: string; apiKey: string }> {
  const companyId = deps.newId('comp');
  const createdAt = new Date(deps.nowMs());
  await deps.accounts.insertCompany({ _id: companyId, name, createdAt });
  const { apiKey } = await createApiKey(deps, companyId, 'first key');
  return { companyId, apiKey };
}

export async function createApiKey(
  { accounts, newId, nowMs }: CompanyDeps,
  companyId: string,
  name: string,
): Promise<{ keyId: string; apiKey: string }> {
  const { key, document } = makeApiKey({ newId, nowMs }, companyId, name);
  await accounts.insertKey(document);
  return { keyId: document._id, apiKey: key };
}
