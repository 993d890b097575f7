import { createCoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import {
  type CompanyLife,
  createCompanyLife,
} from '@posthorn/platform/mongo/companies/companies.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { mongo } from 'mongoose';
import type { DispatcherConfig } from './config.ts';

export interface Companies extends Pick<SuspendedCompanies, 'suspendedForMs'> {
  /** Resolves true when the company is removed, or is being removed: nothing may be recorded for it. */
  isRemoved: (companyId: string) => Promise<boolean>;
}

/** Asked only for records whose webhook was deleted. */
const STATUS_CACHE = { ttlMs: 2_000, maxSize: 1_000, sizeOf: () => 1 };

/** Resolves when it is known which companies are suspended: before that nothing may be sent. */
export async function openCompanies(
  { lifecycle, logger, keepTrying }: ServiceContext<DispatcherConfig>,
  db: mongo.Db,
): Promise<Companies> {
  const life = createCompanyLife(db);
  const first = await keepTrying('read the suspended companies', life.listSuspended);
  const suspended = createSuspendedCompanies({
    companies: life,
    first,
    nowMs: systemClockMs,
    logger,
  });
  suspended.start();
  lifecycle.onStop('suspended companies', suspended.stop);
  const statuses = createCoalescingCache<{ isRemoved: boolean }>(STATUS_CACHE);
  const readStatus = async (companyId: string): Promise<{ isRemoved: boolean }> => {
    const status = await keepTrying('look up companies', () => life.statusOf(companyId));
    return { isRemoved: status === null || status === 'removing' };
  };
  return {
    suspendedForMs: suspended.suspendedForMs,
    isRemoved: async (companyId) => {
      const found = await statuses.get(companyId, () => readStatus(companyId));
      return found?.isRemoved ?? true;
    },
  };
}

interface SuspendedCompanies {
  /** For how long the company has been suspended, in milliseconds; null when it is not. */
  suspendedForMs: (companyId: string) => number | null;
  start: () => void;
  /** Reads the list again. When that fails, the last one stays. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface SuspendedCompaniesDeps {
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
