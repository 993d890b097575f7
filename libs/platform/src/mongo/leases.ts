import type { mongo } from 'mongoose';
import { collection } from './collections.ts';

export interface LeaseStore {
  /** Takes or renews the lease by the database's clock; false while another holder has it. */
  hold: (name: string, holder: string, ttlMs: number) => Promise<boolean>;
  release: (name: string, holder: string) => Promise<void>;
}

const DUPLICATE_KEY = 11_000;

export function createLeaseStore(db: mongo.Db): LeaseStore {
  const leases = collection(db, 'leases');
  return {
    async hold(name, holder, ttlMs) {
      const isFree = {
        $or: [{ $eq: ['$holder', holder] }, { $lt: ['$expiresAt', '$$NOW'] }],
      };
      try {
        await leases.updateOne(
          { _id: name, $expr: isFree },
          [{ $set: { holder, expiresAt: { $add: ['$$NOW', ttlMs] } } }],
          { upsert: true },
        );
        return true;
      } catch (error) {
        // The upsert of a lease that somebody holds collides with its document.
        if (error instanceof Error && 'code' in error && error.code === DUPLICATE_KEY) return false;
        throw error;
      }
    },
    async release(name, holder) {
      await leases.deleteOne({ _id: name, holder });
    },
  };
}
