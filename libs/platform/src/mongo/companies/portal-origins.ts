import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';

/** Returns which pages may frame the portal of each of these companies, of those that have said so. */
export async function readPortalOrigins(
  db: mongo.Db,
  companyIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const stored = collection(db, 'portalSettings').find({ _id: { $in: [...companyIds] } });
  return new Map((await stored.toArray()).map(({ _id, origins }) => [_id, origins]));
}
