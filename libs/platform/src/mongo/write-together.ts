import mongoose, { type mongo } from 'mongoose';
import { createBatcher } from '../async/batcher.ts';
import { isOutage } from '../async/keep-trying.ts';
import { createReadTogether } from '../async/read-together.ts';
import { withoutUndefined } from './company-documents.ts';
import { collection, type CollectionName, type DocumentOf } from './collections.ts';

/** What is created alone waits for nobody, and what comes during a write is the next one. */
const TOGETHER = { maxItems: 100, lingerMs: 0, maxInFlight: 1 };

/**
 * Returns a function that inserts one document: those that come at the same time share a write, which a majority
 * acknowledges. A field that is undefined is not stored. It throws what the insert of this document alone throws, such as that its uid is taken.
 */
export function createInsertTogether<Name extends CollectionName>(
  db: mongo.Db,
  name: Name,
): (document: DocumentOf[Name]) => Promise<void> {
  const documents = collection(db, name) as unknown as mongo.Collection<{ _id: string }>;
  const batch = createBatcher<{ _id: string }, boolean>({
    ...TOGETHER,
    async run(items) {
      const [first, ...others] = items;
      // The error of several does not say which index has refused a document: that is inserted once more, alone.
      if (first && others.length === 0) {
        await documents.insertOne(first);
        return [true];
      }
      try {
        await documents.insertMany(items, { ordered: false });
        return items.map(() => true);
      } catch (error) {
        const refused = refusedOf(error);
        if (refused) return items.map((_, index) => !refused.has(index));
        if (isOutage(error)) throw error;
        // One that cannot be encoded must not fail the others.
        return items.map(() => false);
      }
    },
  });
  return async (document) => {
    const stored = withoutUndefined(document);
    if (!(await batch.add(stored))) await documents.insertOne(stored);
  };
}

/** Returns the indexes of the documents that were not inserted; null when that is not known of each. */
function refusedOf(error: unknown): ReadonlySet<number> | null {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) return null;
  if (error.result.getWriteConcernError()) return null;
  return new Set([error.writeErrors].flat().map(({ index }) => index));
}

/**
 * Returns a function that looks up whether a company has something now. What is asked for at the same time is read together,
 * by a read that begins after it was asked for.
 */
export function createExists(
  db: mongo.Db,
  name: 'projects' | 'apps',
): (companyId: string, id: string) => Promise<boolean> {
  const companyOf = createReadTogether(
    async (ids) => {
      const found = await collection(db, name)
        .find({ _id: { $in: [...ids] } })
        .project<{ _id: string; companyId: string }>({ companyId: 1 })
        .toArray();
      return new Map(found.map(({ _id, companyId }) => [_id, companyId]));
    },
    { lingerMs: 0 },
  );
  return async (companyId, id) => (await companyOf(id)) === companyId;
}
