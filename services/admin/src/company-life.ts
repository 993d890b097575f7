import { type AuditAction, NO_COMPANY } from '@posthorn/domain/audit.ts';
import type { CompanyStatus } from '@posthorn/domain/company.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { AdminAction, RecordAdmin } from './command.ts';

export interface CompanyLifeDeps {
  life: Pick<CompanyLife, 'statusOf' | 'suspend' | 'resume' | 'beginRemoval'>;
  record: RecordAdmin;
}

type LifeOnly = Pick<CompanyLifeDeps, 'life'>;

interface ShownStatus {
  companyId: string;
  /** Null when there is no such company any more. */
  status: CompanyStatus | null;
}

/** Throws for an unknown company, and for one that is being removed. */
export async function suspendCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
): Promise<ShownStatus> {
  await assertKept({ life }, companyId);
  await record(ofCompany('company.suspended', companyId), () => life.suspend(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/** Throws for an unknown company, and for one that is being removed. */
export async function resumeCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
): Promise<ShownStatus> {
  await assertKept({ life }, companyId);
  await record(ofCompany('company.resumed', companyId), () => life.resume(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/**
 * Begins the removal of the company; the gateways do the rest. Throws for an unknown company, and unless
 * `confirmed` is its id too. May be repeated.
 */
export async function deleteCompany(
  { life, record }: CompanyLifeDeps,
  companyId: string,
  confirmed: string | undefined,
): Promise<ShownStatus> {
  if (confirmed !== companyId) {
    throw new Error(`To delete everything of the company, give --confirm ${companyId}.`);
  }
  await requireStatus({ life }, companyId);
  // The events of the company are removed with it; this one stays.
  const deletion = { ...ofCompany('company.deleted', companyId), companyId: NO_COMPANY };
  await record(deletion, () => life.beginRemoval(companyId));
  return { companyId, status: await life.statusOf(companyId) };
}

/** Of what is done to a company as a whole. */
export function ofCompany(action: AuditAction, companyId: string): AdminAction {
  return { companyId, action, target: { kind: 'company', id: companyId }, fields: {} };
}

async function requireStatus({ life }: LifeOnly, companyId: string): Promise<CompanyStatus> {
  const status = await life.statusOf(companyId);
  if (status === null) throw new Error(`There is no company ${companyId}.`);
  return status;
}

async function assertKept(deps: LifeOnly, companyId: string): Promise<void> {
  if ((await requireStatus(deps, companyId)) === 'removing') {
    throw new Error(`The company ${companyId} is being deleted.`);
  }
}
