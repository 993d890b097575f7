import { companyStatusOf, type CompanyStatus } from '@posthorn/domain/company.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';

/** Suspends, resumes and removes companies. Every change may be repeated. */
export interface CompanyLife {
  /** Null when there is no such company. */
  statusOf: (companyId: string) => Promise<CompanyStatus | null>;
  suspend: (companyId: string) => Promise<void>;
  /** A company that is being removed stays suspended. */
  resume: (companyId: string) => Promise<void>;
  /** Suspends the company for good and removes its keys. Everything else is removed later. */
  beginRemoval: (companyId: string) => Promise<void>;
  /** By id, since when they are suspended, in milliseconds since 1970. Includes those that are being removed. */
  listSuspended: () => Promise<Map<string, number>>;
  /** The companies that are being removed and have been suspended for `forMs`, by the database's clock. */
  listRemovable: (forMs: number) => Promise<string[]>;
  /** Removes the company itself, which is the last of it. */
  endRemoval: (companyId: string) => Promise<void>;
}

/** A time is set once: whoever repeats a change does not begin again. */
const onceNow = (field: string) => ({ $ifNull: [`$${field}`, '$$NOW'] });

export function createCompanyLife(db: mongo.Db): CompanyLife {
  const companies = collection(db, 'companies');
  const marked = { suspendedAt: { $exists: true } };
  return {
    async statusOf(_id) {
      const found = await companies.findOne({ _id });
      return found && companyStatusOf(found);
    },
    async suspend(_id) {
      await companies.updateOne({ _id }, [{ $set: { suspendedAt: onceNow('suspendedAt') } }]);
    },
    async resume(_id) {
      const filter = { _id, removalAt: { $exists: false } };
      await companies.updateOne(filter, { $unset: { suspendedAt: '' } });
    },
    async beginRemoval(_id) {
      const marks = { suspendedAt: onceNow('suspendedAt'), removalAt: onceNow('removalAt') };
      await companies.updateOne({ _id }, [{ $set: marks }]);
      await collection(db, 'apiKeys').deleteMany({ companyId: _id });
    },
    async listSuspended() {
      const found = await companies.find(marked).toArray();
      return new Map(
        found.map(({ _id, suspendedAt, createdAt }) => [_id, (suspendedAt ?? createdAt).getTime()]),
      );
    },
    async listRemovable(forMs) {
      // In the projection: as a filter, MongoDB would read the collection and not the index.
      const isQuiet = { $lte: ['$suspendedAt', { $subtract: ['$$NOW', forMs] }] };
      const found = companies.find({ ...marked, removalAt: { $exists: true } });
      const page = found.project<{ _id: string; isQuiet: boolean }>({ isQuiet });
      return (await page.toArray()).filter((each) => each.isQuiet).map(({ _id }) => _id);
    },
    async endRemoval(_id) {
      await companies.deleteOne({ _id, removalAt: { $exists: true } });
    },
  };
}
