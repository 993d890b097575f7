import { type AuditAction, type AuditedFields, NO_COMPANY } from '@posthorn/domain/audit.ts';
import { type CompanyStatus, companyStatusOf } from '@posthorn/domain/company.ts';
import type { GroupRole } from '@posthorn/domain/people.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import {
  type AskedRights,
  type CompanyLife,
  type CompanyStore,
  createCompanyStore,
  type KeyRights,
  makeApiKey,
  toKeyRights,
} from '@posthorn/platform/mongo/companies/companies.ts';
import { createPeopleStore, type PeopleStore } from '@posthorn/platform/mongo/companies/people.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import {
  type AdminAction,
  createRecordAdmin,
  databaseConfig,
  type RecordAdmin,
  runOnDatabase,
} from './command.ts';
import { type OutputOptions } from './output.ts';

export interface CompanyDeps {
  companies: CompanyStore;
  people: Pick<PeopleStore, 'writeMapping'>;
  record: RecordAdmin;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

type KeyDeps = Omit<CompanyDeps, 'hasApp'>;

interface CreatedKey {
  keyId: string;
  /** Only its hash is stored. */
  apiKey: string;
}

const MAX_NAME_CHARS = 100;

/**
 * Creates a company and its first API key, with the roles of groups if there are any. Throws if the name does not have 1 to
 * 100 characters.
 */
export async function createCompany(
  deps: KeyDeps,
  name: string,
  groups: readonly GroupRole[] = [],
): Promise<{ companyId: string; apiKey: string }> {
  if (name.length < 1 || name.length > MAX_NAME_CHARS) {
    throw new Error(`A name must have 1 to ${MAX_NAME_CHARS} characters.`);
  }
  const companyId = deps.newId('comp');
  const createdAt = new Date(deps.nowMs());
  const action = 'company.created' as const;
  const target = { kind: 'company' as const, id: companyId };
  const { key, document } = newApiKey(deps, companyId, 'first key', {});
  await deps.record(
    { companyId, action, target, fields: { name } },
    async () => {
      await deps.companies.insertCompany({ _id: companyId, name, createdAt });
      await deps.companies.insertKey(document);
      if (groups.length > 0) await deps.people.writeMapping(companyId, groups, deps.nowMs());
    },
    () => ({ name, keyId: document._id, groups: groups.length > 0 ? groups : undefined }),
  );
  return { companyId, apiKey: key };
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
  const { key, document } = newApiKey(deps, companyId, 'made by admin', asked);
  const { _id: keyId, name, scopes, expiresAt } = document;
  const fields = { name, scopes, appId, expiresAt };
  await deps.record(keyAction(companyId, 'api_key.created', keyId, fields), () =>
    deps.companies.insertKey(document),
  );
  return { keyId, apiKey: key };
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
    ...rightsOf(rights),
  }));
}

/** Throws for an unknown key. */
export async function revokeApiKey(
  { companies, record }: CompanyDeps,
  keyId: string,
): Promise<{ revoked: string }> {
  const companyId = await companies.companyOfKey(keyId);
  const isRemoved =
    companyId !== null &&
    (await record(keyAction(companyId, 'api_key.revoked', keyId, {}), () =>
      companies.removeKey(keyId),
    ));
  if (!isRemoved) throw new Error(`There is no API key ${keyId}.`);
  return { revoked: keyId };
}

function keyAction(
  companyId: string,
  action: AuditAction,
  keyId: string,
  fields: AuditedFields,
): AdminAction {
  return { companyId, action, target: { kind: 'apiKey', id: keyId }, fields };
}

async function assertCompany({ companies }: CompanyDeps, companyId: string): Promise<void> {
  if (!(await companies.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
}

/** Returns the limits of a key. A key without limits has none of the three fields. */
function rightsOf({ scopes, appId, expiresAt }: KeyRights): object {
  return {
    ...(scopes && { scopes: scopes.join(',') }),
    ...(appId !== undefined && { appId }),
    ...(expiresAt && { expiresAt }),
  };
}

function newApiKey(deps: KeyDeps, companyId: string, name: string, asked: AskedRights) {
  return makeApiKey(deps, companyId, name, toKeyRights(asked));
}

export interface CompanyLifeDeps {
  life: Pick<CompanyLife, 'statusOf' | 'suspend' | 'resume' | 'beginRemoval'>;
  record: RecordAdmin;
}

interface StatusOfCompany {
  companyId: string;
  /** Null when the company is gone. */
  status: CompanyStatus | null;
}

/** Throws for an unknown company, and for one that is being removed. */
export async function suspendCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
): Promise<StatusOfCompany> {
  await assertNotRemoved(life, companyId);
  await record(ofCompany('company.suspended', companyId), () => life.suspend(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/** Throws for an unknown company, and for one that is being removed. */
export async function resumeCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
): Promise<StatusOfCompany> {
  await assertNotRemoved(life, companyId);
  await record(ofCompany('company.resumed', companyId), () => life.resume(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/**
 * Begins the removal of the company, which the retry service completes. Throws for an unknown company, and unless
 * `confirmed` is its id too. May be repeated.
 */
export async function deleteCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
  confirmed: string | undefined,
): Promise<StatusOfCompany> {
  if (confirmed !== companyId) {
    throw new Error(`To delete everything of the company, give --confirm ${companyId}.`);
  }
  await requireStatus(life, companyId);
  // The events of the company are removed with it; this one stays.
  const deletion = { ...ofCompany('company.deleted', companyId), companyId: NO_COMPANY };
  await record(deletion, () => life.beginRemoval(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/** An action on a company as a whole. */
export function ofCompany(action: AuditAction, companyId: string): AdminAction {
  return { companyId, action, target: { kind: 'company', id: companyId }, fields: {} };
}

async function requireStatus(
  life: CompanyLifeDeps['life'],
  companyId: string,
): Promise<CompanyStatus> {
  const status = await life.statusOf(companyId);
  if (status === null) throw new Error(`There is no company ${companyId}.`);
  return status;
}

async function assertNotRemoved(life: CompanyLifeDeps['life'], companyId: string): Promise<void> {
  if ((await requireStatus(life, companyId)) === 'removing') {
    throw new Error(`The company ${companyId} is being deleted.`);
  }
}

/** Runs `work` on the companies and API keys, and prints what it returns. */
export function runOnCompanies(
  output: OutputOptions,
  work: (deps: CompanyDeps) => Promise<object>,
): Promise<void> {
  return runOnDatabase(output, databaseConfig, (db) =>
    work({
      companies: createCompanyStore(db),
      people: createPeopleStore(db),
      hasApp: async (companyId, _id) =>
        (await documentsOf(db, 'apps', companyId).findOne({ _id })) !== null,
      record: createRecordAdmin(db),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
  );
}
