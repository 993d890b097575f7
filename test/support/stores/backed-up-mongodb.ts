import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import mongoose from 'mongoose';
import { ensurePrograms } from '../../../tools/local-stack/machine/required-programs.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import {
  findMongod,
  mongodbPrograms,
  startMongodb,
} from '../../../tools/local-stack/stores/mongodb-native.ts';
import type { Child } from '../../../tools/local-stack/processes/child.ts';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import type { Log } from '../../../tools/local-stack/waiting.ts';

const { MongoClient } = mongoose.mongo;

/** A mongod of one test, with the steps of docs/backup-and-restore.md. */
export interface BackedUpMongodb {
  url: string;
  /** Copies the files of the running member while writes are locked. */
  backUp: () => Promise<void>;
  /** Kills mongod and deletes its files. */
  destroy: () => Promise<void>;
  /** Puts the copied files in place and starts mongod on them. */
  restore: () => Promise<void>;
}

interface Options {
  dir: string;
  database: string;
  children: Children;
  log: Log;
}

export async function startBackedUpMongodb({
  dir,
  database,
  children,
  log,
}: Options): Promise<BackedUpMongodb> {
  const [data, backup] = [join(dir, 'data'), join(dir, 'backup')];
  mkdirSync(dir, { recursive: true });
  const [port = 0] = await freePorts(1);
  const source = await findMongod(children, log);
  await ensurePrograms(mongodbPrograms(source), children, log);
  const launch = (): Promise<Child> =>
    startMongodb({
      stackDir: dir,
      dir: data,
      port,
      source,
      children,
      logPath: join(dir, 'mongod.log'),
      log,
    });
  let child = await launch();
  const url = `mongodb://127.0.0.1:${port}/${database}?directConnection=true`;
  return {
    url,
    backUp: () =>
      whileLocked(url, () => {
        cpSync(data, backup, { recursive: true });
      }),
    async destroy() {
      await child.kill();
      rmSync(data, { recursive: true });
    },
    async restore() {
      cpSync(backup, data, { recursive: true });
      child = await launch();
    },
  };
}

/** All data are in the files while the lock is held, and no file changes. */
async function whileLocked(url: string, copy: () => void): Promise<void> {
  const client = new MongoClient(url);
  try {
    const admin = client.db('admin');
    await admin.command({ fsync: 1, lock: true });
    try {
      copy();
    } finally {
      await admin.command({ fsyncUnlock: 1 });
    }
  } finally {
    await client.close();
  }
}
