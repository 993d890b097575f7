import { mkdirSync } from 'node:fs';
import { wine64 } from '../machine/parts.ts';
import type { MongodSource } from '../mongodb/find-mongod.ts';
import { providePortableMongod } from '../mongodb/portable-mongod.ts';
import { leadReplicaSet, shutDownMongod } from '../mongodb/replica-set.ts';
import { prepareWine, stopWine, wineEnv, winePrefix } from '../mongodb/wine.ts';
import { type Child, orItsDeath } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';

interface MongodbPlace {
  stackDir: string;
  dir: string;
  port: number;
  source: MongodSource;
  children: Children;
  logPath: string;
  log: Log;
}

/** How to run mongod, and what to clear away after it. */
interface Launch {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  afterExit?: () => Promise<void>;
}

/** The wiredTiger cache takes half of the memory by default, which the services and Kafka need too. */
const CACHE_GB = '1';

export async function startMongodb(place: MongodbPlace): Promise<Child> {
  const { dir, port, children, logPath } = place;
  mkdirSync(dir, { recursive: true });
  const { command, args, env, afterExit } = await launchOf(place);
  const flags = ['--replSet', 'rs0', '--bind_ip', '127.0.0.1', '--port', String(port)];
  const child = children.start({
    name: 'mongodb',
    command,
    args: [...args, ...flags, '--wiredTigerCacheSizeGB', CACHE_GB],
    env,
    port,
    logPath,
    stopTimeoutMs: 15_000,
    askToStop: () => shutDownMongod(port),
    ...(afterExit && { afterExit }),
  });
  await orItsDeath(child, leadReplicaSet(port, 60_000));
  return child;
}

async function launchOf(place: MongodbPlace): Promise<Launch> {
  const { source, dir } = place;
  if (source.kind === 'program') {
    return { command: source.path, args: ['--dbpath', dir], env: process.env };
  }
  return launchWithWine(place);
}

async function launchWithWine(place: MongodbPlace): Promise<Launch> {
  const { stackDir, dir, children, log } = place;
  log('MongoDB is the build for Windows, under wine: for trying and testing only');
  const [program] = await Promise.all([
    providePortableMongod(children, log),
    prepareWine(stackDir, children, log),
  ]);
  // Drive Z: is the root folder. The diagnostic data collection reads Windows counters that wine does not have.
  const quirks = ['--setParameter', 'diagnosticDataCollectionEnabled=false'];
  return {
    command: wine64() ?? 'wine64',
    args: [program, ...quirks, '--dbpath', `Z:${dir}`],
    env: wineEnv(winePrefix(stackDir)),
    afterExit: () => stopWine(stackDir),
  };
}
