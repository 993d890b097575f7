import { CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

export interface Companies {
  isSuspended: (companyId: string) => boolean;
  /** Resolves true when the company is removed, or is being removed: nothing may be recorded for it. */
  isRemoved: (companyId: string) => Promise<boolean>;
  /** Reads the suspended companies again, because a company has changed. */
  forget: () => void;
  start: () => void;
  /** Reads the suspended companies again, unless none has changed. When that fails, the last list stays. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface CompaniesDeps {
  life: Pick<CompanyLife, 'listSuspended' | 'statusOf'>;
  /** The suspended companies at the start. Before they are known nothing may be sent. */
  suspended: ReadonlyMap<string, number>;
  /** Returns true while `forget` is called for every change of a company. */
  areChangesFollowed: () => boolean;
  keepTrying: KeepTrying;
  logger: Pick<Logger, 'warn'>;
}

/**
 * While changes are not followed. What was followed last counts for a second more, and a read may take half a second: a company
 * that is suspended gets no attempt that begins more than two seconds later (docs/contract.md C24.2).
 */
const EVERY_MS = 500;
/** Used only for records whose webhook was deleted. */
const STATUS_CACHE = { ttlMs: 2_000, maxSize: 1_000, sizeOf: () => 1 };

/** Few companies are suspended: all of them are in memory, so that no attempt has to wait for a read. */
export function createCompanies({
  life,
  suspended: first,
  areChangesFollowed,
  keepTrying,
  logger,
}: CompaniesDeps): Companies {
  let suspended = first;
  /** Of the companies as a whole; `read` is that of the list. */
  const version = { current: 1, read: 0 };
  const { start, tick, stop } = createLoop({
    name: 'suspended companies',
    everyMs: EVERY_MS,
    run: async () => {
      if (version.read === version.current && areChangesFollowed()) return;
      // One that changes during the read may not be in it.
      do {
        const { current } = version;
        suspended = await life.listSuspended();
        version.read = current;
      } while (version.read !== version.current);
    },
    logger,
  });
  const statuses = new CoalescingCache<{ isRemoved: boolean }>(STATUS_CACHE);
  const readStatus = async (companyId: string): Promise<{ isRemoved: boolean }> => {
    const status = await keepTrying('look up companies', () => life.statusOf(companyId));
    return { isRemoved: status === null || status === 'removing' };
  };
  return {
    isSuspended: (companyId) => suspended.has(companyId),
    async isRemoved(companyId) {
      const found = await statuses.get(companyId, () => readStatus(companyId));
      return found?.isRemoved ?? true;
    },
    forget() {
      version.current += 1;
      void tick();
    },
    start,
    tick,
    stop,
  };
}
