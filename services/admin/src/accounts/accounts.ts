import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { AccountStore } from '@posthorn/platform/mongo/accounts/accounts.ts';
import { makeApiKey } from '@posthorn/platform/mongo/accounts/make-api-key.ts';

export interface AccountDeps {
  accounts: AccountStore;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export interface CreatedKey {
  keyId: string;
  /** Only its hash is stored. */
  apiKey: string;
}

const MAX_NAME_CHARS = 100;

/** Creates a company and its first API key. Throws if the name does not have 1 to 100 characters. */
export async function createCompany(
  deps: AccountDeps,
  name: string,
): Promise<{ companyId: string; apiKey: string }> {
  if (name.length < 1 || name.length > MAX_NAME_CHARS) {
    throw new Error(`A name must have 1 to ${MAX_NAME_CHARS} characters.`);
  }
  const companyId = deps.newId('comp');
  const createdAt = new Date(deps.nowMs());
  await deps.accounts.insertCompany({ _id: companyId, name, createdAt });
  const { apiKey } = await insertApiKey(deps, companyId, 'first key');
  return { companyId, apiKey };
}

/** Returns the companies, oldest first. */
export async function listCompanies({ accounts }: AccountDeps): Promise<object[]> {
  const companies = await accounts.listCompanies();
  return companies.map(({ _id, name, createdAt }) => ({ companyId: _id, name, createdAt }));
}

/** Throws for an unknown company. */
export async function createApiKey(deps: AccountDeps, companyId: string): Promise<CreatedKey> {
  await assertCompany(deps, companyId);
  return insertApiKey(deps, companyId, 'made by admin');
}

/** Returns the API keys of a company, oldest first. Throws for an unknown company. */
export async function listApiKeys(deps: AccountDeps, companyId: string): Promise<object[]> {
  await assertCompany(deps, companyId);
  const keys = await deps.accounts.listKeys(companyId);
  return keys.map(({ _id, name, prefix, createdAt }) => ({ keyId: _id, name, prefix, createdAt }));
}

/** Throws for an unknown key. */
export async function revokeApiKey(
  { accounts }: AccountDeps,
  keyId: string,
): Promise<{ revoked: string }> {
  if (!(await accounts.removeKey(keyId))) throw new Error(`There is no API key ${keyId}.`);
  return { revoked: keyId };
}

async function assertCompany({ accounts }: AccountDeps, companyId: string): Promise<void> {
  if (!(await accounts.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
}

async function insertApiKey(
  { accounts, newId, nowMs }: AccountDeps,
  companyId: string,
  name: string,
): Promise<CreatedKey> {
  const { key, document } = makeApiKey({ newId, nowMs }, companyId, name);
  await accounts.insertKey(document);
  return { keyId: document._id, apiKey: key };
}
