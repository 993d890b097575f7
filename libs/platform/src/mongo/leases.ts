import type { mongo } from 'mongoose';
import { setTimeout as wait } from 'node:timers/promises';
import { collection } from './collections.ts';
import { isDuplicateKey } from './connect.ts';

/** Leases by name. The database's clock decides when they end. */
export interface LeaseStore {
  /** Takes or renews the lease. Returns false while another holder has it. */
  hold: (name: string, holder: string) => Promise<boolean>;
  /** Ends the lease if this holder has it. */
  release: (name: string, holder: string) => Promise<void>;
}

/** How long a lease lasts without renewal. After a crash another process can take it this much later. */
export const LEASE_MS = 15_000;

/** Every holder of one lease must use the same `ttlMs`. */
export function createLeaseStore(db: mongo.Db, ttlMs = LEASE_MS): LeaseStore {
  const leases = collection(db, 'leases');
  return {
    async hold(name, holder) {
      // One pipeline, because an upsert cannot filter by the database's clock. A lease that does not
      // exist yet counts as expired: a missing field sorts before every date.
      const isFree = { $or: [{ $eq: ['$holder', holder] }, { $lt: ['$expiresAt', '$$NOW'] }] };
      const expiresAt = { $add: ['$$NOW', ttlMs] };
      try {
        const lease = await leases.findOneAndUpdate(
          { _id: name },
          [
            {
              $set: {
                holder: { $cond: [isFree, holder, '$holder'] },
                expiresAt: { $cond: [isFree, expiresAt, '$expiresAt'] },
              },
            },
          ],
          { upsert: true, returnDocument: 'after' },
        );
        return lease?.holder === holder;
      } catch (error) {
        // Two holders took a new lease at once, and the other one won.
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },
    async release(name, holder) {
      await leases.deleteOne({ _id: name, holder });
    },
  };
}

const ASK_EVERY_MS = 500;

interface LeaseHolder {
  name: string;
  holder: string;
}

/** Waits until no other holder has the lease, and renews it while the work runs. Returns what the work resolves to. */
export async function withLease<Result>(
  leases: LeaseStore,
  { name, holder }: LeaseHolder,
  work: () => Promise<Result>,
): Promise<Result> {
  while (!(await leases.hold(name, holder))) await wait(ASK_EVERY_MS);
  // After a renewal that failed, the next one comes before the lease ends.
  const renew = (): void => void leases.hold(name, holder).catch(() => undefined);
  const renewal = setInterval(renew, LEASE_MS / 3);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await leases.release(name, holder).catch(() => undefined);
  }
}
