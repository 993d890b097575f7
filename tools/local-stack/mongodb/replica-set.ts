import mongoose from 'mongoose';
import { waitUntil } from '../waiting.ts';

const { MongoClient, MongoServerError } = mongoose.mongo;
type Admin = ReturnType<ReturnType<InstanceType<typeof MongoClient>['db']>['admin']>;

const NOT_YET_INITIALIZED = 94;

interface ReplicaSetConfig {
  version: number;
  members: { host: string }[];
}

/** Makes the mongod on this port the only member of replica set rs0, and waits until it accepts writes. */
export async function initiateReplicaSet(port: number, timeoutMs: number): Promise<void> {
  await waitUntil(
    { what: `MongoDB on port ${port} to accept writes`, timeoutMs, intervalMs: 100 },
    () => tryToInitiate(port),
  );
}

async function tryToInitiate(port: number): Promise<boolean> {
  try {
    return await withAdmin(port, async (admin) => {
      await configure(admin, `127.0.0.1:${port}`);
      const hello = await admin.command({ hello: 1 });
      return hello.isWritablePrimary === true;
    });
  } catch {
    // Not listening yet, in recovery, or between two states: tried again.
    return false;
  }
}

async function configure(admin: Admin, host: string): Promise<void> {
  const config = await storedConfig(admin);
  if (config === undefined) {
    const members = [{ _id: 0, host }];
    await admin.command({ replSetInitiate: { _id: 'rs0', members } });
  } else if (config.members[0]?.host !== host) {
    // The port has changed: mongod does not find itself in its configuration, so it cannot vote without a new one.
    const members = [{ ...config.members[0], host }];
    const next = { ...config, version: config.version + 1, members };
    await admin.command({ replSetReconfig: next, force: true });
  }
}

async function storedConfig(admin: Admin): Promise<ReplicaSetConfig | undefined> {
  try {
    const answer = await admin.command({ replSetGetConfig: 1 });
    return answer.config as ReplicaSetConfig;
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NOT_YET_INITIALIZED) return undefined;
    throw error;
  }
}

/** Shuts mongod down cleanly. May reject, because mongod closes the connection instead of sending a reply. */
export async function shutDownMongod(port: number): Promise<void> {
  await withAdmin(port, async (admin) => {
    await admin.command({ shutdown: 1, force: true, timeoutSecs: 2 });
  });
}

async function withAdmin<T>(port: number, use: (admin: Admin) => Promise<T>): Promise<T> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: 2_000,
  });
  try {
    return await use(client.db().admin());
  } finally {
    await client.close();
  }
}
