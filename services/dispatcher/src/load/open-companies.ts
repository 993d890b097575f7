import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { mongo } from 'mongoose';
import type { DispatcherConfig } from '../config.ts';
import { createSuspendedCompanies, type SuspendedCompanies } from './suspended-companies.ts';

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
