import { connectMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { createIndexes } from '@posthorn/platform/mongo/create-indexes.ts';
import { createNamespace } from '../process/namespace.ts';

export interface ScratchDatabase {
  db: Awaited<ReturnType<typeof connectMongo>>['db'];
  drop: () => Promise<void>;
}

/** Creates a database with every collection and index; `drop` removes it. */
export async function openScratchDatabase(): Promise<ScratchDatabase> {
  const mongo = await connectMongo(createNamespace().MONGODB_URL, 'posthorn-test');
  await createIndexes(mongo.db, { days: 30, auditDays: 400 });
  return {
    db: mongo.db,
    drop: async () => {
      await mongo.db.dropDatabase();
      await mongo.close();
    },
  };
}
