import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { createNamespace, randomName } from '../support/process/namespace.ts';
import { emptyDatabase } from '../support/stores/scratch-database.ts';

/** Databases that the Posthorns of test files use one after the other. */
export interface DatabasePool {
  /** Returns the name of a database without documents; a new one has no collection either. */
  take: () => string;
  /** Begins to empty a database for the next one. */
  giveBack: (name: string) => void;
  /** Resolves when every database is empty; rejects when one could not be emptied. */
  settle: () => Promise<void>;
}

/**
 * A new database has a hundred files, half a second of processor time to create them, and each of them is written again
 * at every checkpoint.
 */
export function createDatabasePool(): DatabasePool {
  const free: string[] = [];
  const emptying: Promise<void>[] = [];
  return {
    take: () => free.pop() ?? randomName(),
    giveBack(name) {
      const done = empty(name).then(() => void free.push(name));
      // Awaited at the end.
      done.catch(() => undefined);
      emptying.push(done);
    },
    settle: async () => void (await Promise.all(emptying)),
  };
}

async function empty(name: string): Promise<void> {
  const { MONGODB_URL: url } = createNamespace(process.env, name);
  const mongo = await connectMongo(url, 'posthorn-test', undefined, { isForLongCommands: true });
  try {
    await emptyDatabase(mongo.db);
  } finally {
    await mongo.close();
  }
}
