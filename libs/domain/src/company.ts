/**
 * `suspended`: the company's keys are refused and its attempts are deferred. `removing`: the same, until all its data
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

/** Between two attempts to deliver for a suspended company, in milliseconds. */
const SHORTEST_DEFERRAL_MS = 5_000;
const LONGEST_DEFERRAL_MS = 30 * 60_000;
/** A deferral takes this share of the time for which the company has been suspended. */
const SHARE = 1 / 4;

/**
 * Returns for how many milliseconds an attempt is deferred when its company has been suspended for `suspendedForMs`.
 * After the company is resumed, a delivery continues within a quarter of that time, and within half an hour; a
 * backlog of a million deliveries then circulates with 560 records a second.
 */
export function suspensionDefersMs(suspendedForMs: number): number {
  return Math.min(Math.max(suspendedForMs * SHARE, SHORTEST_DEFERRAL_MS), LONGEST_DEFERRAL_MS);
}
