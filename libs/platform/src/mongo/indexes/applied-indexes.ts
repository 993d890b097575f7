import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';

/** What create-indexes has done, for operators and for gateways. */
export interface AppliedIndexes {
  /** Of the indexes that were asked for last. */
  version: string;
  /** `collection.name` of the indexes that were asked for and were not known to be ready. */
  pending: string[];
}

const ID = 'indexes';

export async function writeAppliedIndexes(
  db: mongo.Db,
  { version, pending }: AppliedIndexes,
): Promise<void> {
  const fields = [{ $set: { version, pending, updatedAt: '$$NOW' } }];
  await collection(db, 'migrations').updateOne({ _id: ID }, fields, { upsert: true });
}

/** Returns null where no version that writes this has run. */
export async function readAppliedIndexes(db: mongo.Db): Promise<AppliedIndexes | null> {
  return collection(db, 'migrations').findOne({ _id: ID });
}
