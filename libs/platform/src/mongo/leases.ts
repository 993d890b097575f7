import type { mongo } from 'mongoose';
import { collection } from './collections.ts';
import { DUPLICATE_KEY } from './duplicate-key.ts';

export interface LeaseStore {
  /** Takes or renews the lease by the database's clock; false while another holder has it. */
  hold: (name: string, holder: string, ttlMs: number) => Promise<boolean>;
  release: (name: string, holder: string) => Promise<void>;
}

export function createLeaseStore(db: mongo.Db): LeaseStore {
  const leases = collection(db, 'leases');
  return {
    async hold(name, holder, ttlMs) {
      // In one pipeline, because an upsert may not filter by the database's clock. A lease that does
      // not exist yet counts as expired: a missing field sorts before every date.
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
        // Two first holders at once: the other one was faster.
        if (error instanceof Error && 'code' in error && error.code === DUPLICATE_KEY) return false;
        throw error;
      }
    },
    async release(name, holder) {
      await leases.deleteOne({ _id: name, holder });
    },
  };
}
