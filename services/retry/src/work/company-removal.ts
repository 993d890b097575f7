import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { CompanyRemoval } from '@posthorn/platform/mongo/companies/removals.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';

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
      const found = await companies.listRemovable(QUIET_MS);
      const removed = new Map(found.map((companyId) => [companyId, 0]));
      // A step of each in turn: a company with much delays no other.
      while (removed.size > 0) {
        for (const companyId of [...removed.keys()]) {
          if (!(await keep())) return;
          await removeStep(deps, companyId, removed).catch((error: unknown) => {
            removed.delete(companyId);
            logger.warn({ err: error, companyId }, 'removal failed, the next round tries again');
          });
        }
      }
    },
  });
}

/** `removed` has the documents that each company has lost so far in this round. */
async function removeStep(
  { companies, documents, logger }: CompanyRemovalsDeps,
  companyId: string,
  removed: Map<string, number>,
): Promise<void> {
  const step = await documents.removeSome(companyId, STEP);
  const all = (removed.get(companyId) ?? 0) + step;
  removed.set(companyId, all);
  if (step > 0) return;
  removed.delete(companyId);
  if (all === 0) await companies.endRemoval(companyId);
  const text = all === 0 ? 'company removed' : 'removed documents of a company';
  logger.info({ companyId, removed: all }, text);
}
