/**
 * Where a company stands. `suspended`: its keys are refused and its attempts are deferred. `removing`: the
 * same for good, until everything of it is removed.
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
/** A delivery comes back this many times in the time that the company has been suspended so far. */
const PART = 4;

/**
 * Returns for how long, in milliseconds, an attempt is deferred when its company has been suspended for
 * `suspendedForMs`. A delivery goes on at most a quarter of that time after the company is resumed, and
 * half an hour at most; a backlog of a million deliveries then circulates with 560 records a second.
 */
export function suspensionDefersMs(suspendedForMs: number): number {
  return Math.min(Math.max(suspendedForMs / PART, SHORTEST_DEFERRAL_MS), LONGEST_DEFERRAL_MS);
}

/** The deletion of a project, an app or a webhook with everything under it. Stored until it is done. */
export interface Removal {
  id: string;
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  /** Id of the project, app or webhook. It is deleted first, then everything under it. */
  rootId: string;
}
