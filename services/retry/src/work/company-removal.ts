import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { CompanyRemoval } from '@posthorn/platform/mongo/companies/removals.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';

export interface CompanyRemovalsDeps extends LeaseHolder {
  companies: Pick<CompanyLife, 'listRemovable' | 'endRemoval'>;
  documents: CompanyRemoval;
  logger: Pick<Logger, 'info' | 'warn'>;
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
export function createCompanyRemovals(deps: CompanyRemovalsDeps): Loop {
  const { companies, logger } = deps;
  return createLeasedLoop({
    ...deps,
    name: 'removal of companies',
    lease: 'company-removal',
    everyMs: EVERY_MS,
    async run(keep) {
      for (const companyId of await companies.listRemovable(QUIET_MS)) {
        await removeCompany(deps, companyId, keep).catch((error: unknown) => {
          logger.warn({ err: error, companyId }, 'removal failed, the next round tries again');
        });
      }
    },
  });
}

async function removeCompany(
  { companies, documents, logger }: CompanyRemovalsDeps,
  companyId: string,
  keep: KeepLease,
): Promise<void> {
  let removed = 0;
  for (;;) {
    if (!(await keep())) return;
    const step = await documents.removeSome(companyId, STEP);
    removed += step;
    if (step === 0) break;
  }
  if (removed === 0) await companies.endRemoval(companyId);
  const text = removed === 0 ? 'company removed' : 'removed documents of a company';
  logger.info({ companyId, removed }, text);
}
