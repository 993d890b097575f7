import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';

/**
 * Makes every link of a company that was not used yet one whose time is over, without waiting for it. Those of other
 * companies, which other tests have in the same database, stay.
 */
export async function expireLinks(
  { MONGODB_URL }: { MONGODB_URL: string },
  companyId: string,
): Promise<void> {
  const { db, close } = await connectMongo(MONGODB_URL, 'posthorn-test');
  try {
    const expiresAt = new Date(Date.now() - 1_000);
    const links = collection(db, 'links');
    await links.updateMany({ companyId, usedAt: { $exists: false } }, { $set: { expiresAt } });
  } finally {
    await close();
  }
}
