import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';

/** Makes every link that was not used yet one whose time is over, without waiting for it. */
export async function expireLinks({ MONGODB_URL }: { MONGODB_URL: string }): Promise<void> {
  const { db, close } = await connectMongo(MONGODB_URL, 'posthorn-test');
  try {
    const expiresAt = new Date(Date.now() - 1_000);
    const links = collection(db, 'links');
    await links.updateMany({ usedAt: { $exists: false } }, { $set: { expiresAt } });
  } finally {
    await close();
  }
}
