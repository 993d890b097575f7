import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';

/**
 * Removes the statistics of these webhooks and apps, in one request: one for each of them took two minutes of the
 * removal of 30,000 webhooks. A webhook has 720 documents in 30 days. What a dispatcher counted before it knew of the
 * removal, and writes after it, expires.
 */
export async function removeStats(
  db: mongo.Db,
  companyId: string,
  ownerIds: readonly string[],
): Promise<void> {
  // '0' is the character after '/'.
  const ranges = ownerIds.map((id) => ({ _id: { $gte: `${id}/`, $lt: `${id}0` } }));
  await documentsOf(db, 'stats', companyId).deleteEach(ranges);
}
