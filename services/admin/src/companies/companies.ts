import { companyStatusOf } from '@posthorn/domain/company.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import {
  makeApiKey,
  toKeyRights,
  type AskedRights,
  type KeyRights,
} from '@posthorn/platform/mongo/companies/make-api-key.ts';

export interface CompanyDeps {
  companies: CompanyStore;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

type KeyDeps = Omit<CompanyDeps, 'hasApp'>;

export interface CreatedKey {
  keyId: string;
  /** Only its hash is stored. */
  apiKey: string;
}

const MAX_NAME_CHARS = 100;

/** Creates a company and its first API key. Throws if the name does not have 1 to 100 characters. */
export async function createCompany(
  deps: KeyDeps,
  name: string,
): Promise<{ companyId: string; apiKey: string }> {
  if (name.length < 1 || name.length > MAX_NAME_CHARS) {
    throw new Error(`A name must have 1 to ${MAX_NAME_CHARS} characters.`);
  }
  const companyId = deps.newId('comp');
  const createdAt = new Date(deps.nowMs());
  await deps.companies.insertCompany({ _id: companyId, name, createdAt });
  const { apiKey } = await insertApiKey(deps, companyId, 'first key');
  return { companyId, apiKey };
}

/** Returns the companies, oldest first. */
export async function listCompanies({ companies }: CompanyDeps): Promise<object[]> {
  const found = await companies.listCompanies();
  return found.map(({ _id, name, createdAt, ...marks }) => ({
    companyId: _id,
    name,
    createdAt,
    status: companyStatusOf(marks),
  }));
}

/** Throws for an unknown company, and for an app that it does not have. */
export async function createApiKey(
  deps: CompanyDeps,
  companyId: string,
  asked: AskedRights,
): Promise<CreatedKey> {
  await assertCompany(deps, companyId);
  const { appId } = asked;
  if (appId !== undefined && !(await deps.hasApp(companyId, appId))) {
    throw new Error(`The company has no app ${appId}.`);
  }
  return insertApiKey(deps, companyId, 'made by admin', asked);
}

/** Returns the API keys of a company, oldest first. Throws for an unknown company. */
export async function listApiKeys(deps: CompanyDeps, companyId: string): Promise<object[]> {
  await assertCompany(deps, companyId);
  const keys = await deps.companies.listKeys(companyId);
  return keys.map(({ _id, name, prefix, createdAt, ...rights }) => ({
    keyId: _id,
    name,
    prefix,
    createdAt,
    ...shownRights(rights),
  }));
}

/** Throws for an unknown key. */
export async function revokeApiKey(
  { companies }: CompanyDeps,
  keyId: string,
): Promise<{ revoked: string }> {
  if (!(await companies.removeKey(keyId))) throw new Error(`There is no API key ${keyId}.`);
  return { revoked: keyId };
}

async function assertCompany({ companies }: CompanyDeps, companyId: string): Promise<void> {
  if (!(await companies.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
}

/** Nothing is shown of a key that may do all, for ever. */
function shownRights({ scopes, appId, expiresAt }: KeyRights): object {
  return {
    ...(scopes && { scopes: scopes.join(',') }),
    ...(appId !== undefined && { appId }),
    ...(expiresAt && { expiresAt }),
  };
}

async function insertApiKey(
  { companies, newId, nowMs }: KeyDeps,
  companyId: string,
  name: string,
  asked: AskedRights = {},
): Promise<CreatedKey> {
  const { key, document } = makeApiKey({ newId, nowMs }, companyId, name, toKeyRights(asked));
  await companies.insertKey(document);
  return { keyId: document._id, apiKey: key };
}
