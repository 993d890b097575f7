import { requiredAt } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import { addToHour, addToUsage, type MinuteCounts, type UsageCounts } from './stats-documents.ts';

/**
 * Adds to what is stored. Each resolves with those that MongoDB refused, of which nothing was added. A call that
 * rejects may have added all of them: the driver tries once more by itself, and MongoDB knows a repeated update.
 */
export interface StatsStore {
  addMinutes: (minutes: readonly MinuteCounts[]) => Promise<readonly MinuteCounts[]>;
  addUsage: (usage: readonly UsageCounts[]) => Promise<readonly UsageCounts[]>;
}

export function createStatsStore(db: mongo.Db): StatsStore {
  const stats = collection(db, 'stats');
  const usage = collection(db, 'usage');
  return {
    addMinutes: (minutes) =>
      refusedOf(minutes, () => stats.bulkWrite(minutes.map(addToHour), { ordered: false })),
    addUsage: (counts) =>
      refusedOf(counts, () => usage.bulkWrite(counts.map(addToUsage), { ordered: false })),
  };
}

/** Two processes that insert the same document at once: the second one is refused, and adds to it next time. */
async function refusedOf<Value>(
  values: readonly Value[],
  write: () => Promise<unknown>,
): Promise<readonly Value[]> {
  try {
    await write();
    return [];
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
    const refused = [error.writeErrors].flat();
    // The driver throws the same error with an empty list when the server did not respond.
    if (refused.length === 0) throw error;
    return refused.map(({ index }) => requiredAt(values, index, 'value of the batch'));
  }
}
