import type { CompanyStatus } from '@posthorn/domain/company.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';

export interface CompanyLifeDeps {
  life: Pick<CompanyLife, 'statusOf' | 'suspend' | 'resume' | 'beginRemoval'>;
}

export interface ShownStatus {
  companyId: string;
  /** Null when there is no such company any more. */
  status: CompanyStatus | null;
}

/** Throws for an unknown company, and for one that is being removed. */
export async function suspendCompany(
  { life }: CompanyLifeDeps,
  companyId: string,
): Promise<ShownStatus> {
  await assertKept({ life }, companyId);
  await life.suspend(companyId);
  return { companyId, status: await life.statusOf(companyId) };
}

/** Throws for an unknown company, and for one that is being removed. */
export async function resumeCompany(
  { life }: CompanyLifeDeps,
  companyId: string,
): Promise<ShownStatus> {
  await assertKept({ life }, companyId);
  await life.resume(companyId);
  return { companyId, status: await life.statusOf(companyId) };
}

/**
 * Begins the removal of the company; the gateways do the rest. Throws for an unknown company, and unless
 * `confirmed` is its id too. May be repeated.
 */
export async function deleteCompany(
  { life }: CompanyLifeDeps,
  companyId: string,
  confirmed: string | undefined,
): Promise<ShownStatus> {
  if (confirmed !== companyId) {
    throw new Error(`To delete everything of the company, give --confirm ${companyId}.`);
  }
  await requireStatus({ life }, companyId);
  await life.beginRemoval(companyId);
  return { companyId, status: await life.statusOf(companyId) };
}

async function requireStatus({ life }: CompanyLifeDeps, companyId: string): Promise<CompanyStatus> {
  const status = await life.statusOf(companyId);
  if (status === null) throw new Error(`There is no company ${companyId}.`);
  return status;
}

async function assertKept(deps: CompanyLifeDeps, companyId: string): Promise<void> {
  if ((await requireStatus(deps, companyId)) === 'removing') {
    throw new Error(`The company ${companyId} is being deleted.`);
  }
}
