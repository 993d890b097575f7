import { mkdirSync } from 'node:fs';
import { wine64 } from '../machine/required-programs.ts';
import type { MongodSource } from '../mongodb/find-mongod.ts';
import { ensureWindowsMongod } from '../mongodb/windows-mongod.ts';
import { initiateReplicaSet, shutDownMongod } from '../mongodb/replica-set.ts';
import { prepareWine, stopWine, wineEnv, winePrefix } from '../mongodb/wine.ts';
import { type Child, failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';

interface MongodbOptions {
  stackDir: string;
  dir: string;
  port: number;
  source: MongodSource;
  children: Children;
  logPath: string;
  log: Log;
  /** Everybody may do everything unless given. */
  login?: MongodbLogin;
}

/** How a mongod that asks for a login is set up, and shut down. */
export interface MongodbLogin {
  /** A file outside the data folder that the members of a replica set share. */
  keyFile: string;
  initiate: (port: number) => Promise<void>;
  shutDown: (port: number) => Promise<void>;
}

/** How to run mongod, and what to clean up after it. */
interface Launch {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  /** A path of this machine as mongod knows it. */
  pathOf: (path: string) => string;
  afterExit?: () => Promise<void>;
}

/** By default the WiredTiger cache takes half of the memory, which the services and Kafka also need. */
const CACHE_GB = '1';

export async function startMongodb(options: MongodbOptions): Promise<Child> {
  const { dir, port, children, logPath, login } = options;
  mkdirSync(dir, { recursive: true });
  const { command, args, env, afterExit, pathOf } = await findLaunch(options);
  const flags = ['--replSet', 'rs0', '--bind_ip', '127.0.0.1', '--port', String(port)];
  const auth = login ? ['--auth', '--keyFile', pathOf(login.keyFile)] : [];
  const child = children.start({
    name: 'mongodb',
    command,
    args: [...args, ...flags, ...auth, '--wiredTigerCacheSizeGB', CACHE_GB],
    env,
    port,
    logPath,
    stopTimeoutMs: 15_000,
    requestStop: () => (login ? login.shutDown(port) : shutDownMongod(port)),
    ...(afterExit && { afterExit }),
  });
  await failOnExit(child, login ? login.initiate(port) : initiateReplicaSet(port, 60_000));
  return child;
}

async function findLaunch(options: MongodbOptions): Promise<Launch> {
  const { source, dir } = options;
  if (source.kind === 'program') {
    const pathOf = (path: string): string => path;
    return { command: source.path, args: ['--dbpath', dir], env: process.env, pathOf };
  }
  return launchWithWine(options);
}

async function launchWithWine(options: MongodbOptions): Promise<Launch> {
  const { stackDir, dir, children, log } = options;
  log('Running the Windows build of MongoDB with wine, for evaluation and tests only');
  const [program] = await Promise.all([
    ensureWindowsMongod(children, log),
    prepareWine(stackDir, children, log),
  ]);
  // Drive Z: is the root folder.
  const pathOf = (path: string): string => `Z:${path}`;
  // Diagnostic data collection reads Windows counters that wine does not have.
  const wineFlags = ['--setParameter', 'diagnosticDataCollectionEnabled=false'];
  return {
    command: wine64() ?? 'wine64',
    args: [program, ...wineFlags, '--dbpath', pathOf(dir)],
    env: wineEnv(winePrefix(stackDir)),
    pathOf,
    afterExit: () => stopWine(stackDir),
  };
}
