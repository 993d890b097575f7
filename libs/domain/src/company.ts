/**
 * `suspended`: the company's keys are refused and its deliveries wait. `removing`: the same, until all its data
 * is removed.
 */
export type CompanyStatus = 'active' | 'suspended' | 'removing';

interface CompanyMarks {
  suspendedAt?: Date | undefined;
  removalAt?: Date | undefined;
}

export function companyStatusOf({ suspendedAt, removalAt }: CompanyMarks): CompanyStatus {
  if (removalAt) return 'removing';
  return suspendedAt ? 'suspended' : 'active';
}
