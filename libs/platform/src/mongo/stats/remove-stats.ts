import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';

/**
 * Removes the statistics of these webhooks and apps. A webhook has 720 documents in 30 days. What a dispatcher
 * counted before it knew of the removal, and writes after it, expires.
 */
export async function removeStats(
  db: mongo.Db,
  companyId: string,
  ownerIds: readonly string[],
): Promise<void> {
  const stats = documentsOf(db, 'stats', companyId);
  for (const ownerId of ownerIds) {
    // '0' is the character after '/'.
    await stats.deleteMany({ _id: { $gte: `${ownerId}/`, $lt: `${ownerId}0` } });
  }
}
