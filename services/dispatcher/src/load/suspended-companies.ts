import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

export interface SuspendedCompanies {
  /** For how long the company has been suspended, in milliseconds; null when it is not. */
  suspendedForMs: (companyId: string) => number | null;
  start: () => void;
  /** Reads the list again. When that fails, the last one stays. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface SuspendedCompaniesDeps {
  companies: Pick<CompanyLife, 'listSuspended'>;
  /** What was read at the start. */
  first: ReadonlyMap<string, number>;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/** A company that is suspended gets no attempt that begins later than this and one read. */
const EVERY_MS = 2_000;

/** Few companies are suspended: all of them are in memory, so that no attempt has to ask. */
export function createSuspendedCompanies(deps: SuspendedCompaniesDeps): SuspendedCompanies {
  let suspended = deps.first;
  const loop = createLoop({
    name: 'suspended companies',
    everyMs: EVERY_MS,
    run: async () => {
      suspended = await deps.companies.listSuspended();
    },
    logger: deps.logger,
  });
  return {
    suspendedForMs(companyId) {
      const sinceMs = suspended.get(companyId);
      return sinceMs === undefined ? null : deps.nowMs() - sinceMs;
    },
    start: loop.start,
    tick: loop.tick,
    stop: loop.stop,
  };
}
