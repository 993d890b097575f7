import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { CompanyRemoval } from '@posthorn/platform/mongo/companies/removals.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

export interface CompanyRemovalsDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  companies: Pick<CompanyLife, 'listRemovable' | 'endRemoval'>;
  documents: CompanyRemoval;
  leases: LeaseStore;
  logger: Pick<Logger, 'info' | 'warn'>;
}

interface CompanyRemovals {
  start: () => void;
  /** Removes the documents of the companies that are being removed. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

const STEP = 1_000;
const EVERY_MS = 5_000;
/**
 * Counted from the beginning of the removal. All work for the company has ended by then: every process knows of it
 * after two seconds, an attempt takes 60 s at most, a request 10 s, and a step that adds up counts its lease of 15 s.
 */
export const QUIET_MS = 120_000;

/**
 * Removes companies whose removal the operator has begun. The document of the company is the last that
 * goes, when a whole round has found nothing else: so a crash leaves nothing behind, nor does a sweep that
 * wrote something in between.
 */
export function createCompanyRemovals(deps: CompanyRemovalsDeps): CompanyRemovals {
  const { companies, logger } = deps;
  return createLoop({
    name: 'removal of companies',
    everyMs: EVERY_MS,
    async run(signal) {
      for (const companyId of await companies.listRemovable(QUIET_MS)) {
        if (signal.aborted) return;
        await removeCompany(deps, companyId, signal).catch((error: unknown) => {
          logger.warn({ err: error, companyId }, 'removal failed, the next round tries again');
        });
      }
    },
    logger,
  });
}

async function removeCompany(
  { companies, documents, leases, holder, logger }: CompanyRemovalsDeps,
  companyId: string,
  signal: AbortSignal,
): Promise<void> {
  const lease = { name: `company-removal/${companyId}`, holder };
  await ifLeaseIsFree(leases, lease, async (renew) => {
    let removed = 0;
    for (;;) {
      const step = await documents.removeSome(companyId, STEP);
      removed += step;
      if (step === 0) break;
      if (signal.aborted || !(await renew())) return;
    }
    if (removed === 0) await companies.endRemoval(companyId);
    const text = removed === 0 ? 'company removed' : 'removed documents of a company';
    logger.info({ companyId, removed }, text);
  });
}
