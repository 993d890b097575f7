import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { ensurePrograms, REDIS } from '../../tools/local-stack/machine/required-programs.ts';
import {
  secondBroker,
  kafkaPrograms,
  newClusterId,
  startKafka,
} from '../../tools/local-stack/stores/kafka-native.ts';
import { freePorts } from '../../tools/local-stack/machine/ports.ts';
import {
  findMongod,
  mongodbPrograms,
  startMongodb,
} from '../../tools/local-stack/stores/mongodb-native.ts';
import type { Children } from '../../tools/local-stack/processes/children.ts';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import { startRedis } from '../../tools/local-stack/stores/redis-native.ts';
import { type Child, signalGroup } from '../../tools/local-stack/processes/child.ts';
import { StackError } from '../../tools/local-stack/stack-error.ts';

export type StoreName = 'kafka' | 'mongodb' | 'redis';

export interface Stores {
  addresses: Addresses;
  kafka: Store;
  mongodb: Store;
  redis: Store;
  /** Starts a broker with id 2 in the cluster of `kafka`. It has no partitions. */
  startSecondBroker: () => Promise<Store>;
}

interface StoresOptions {
  stackDir: string;
  /** Where each store has its data. */
  dirOf: (name: StoreName) => string;
  children: Children;
  log: (line: string) => void;
}

/** Starts the three stores as processes of this machine: containers cannot be suspended one by one. */
export async function startStores(options: StoresOptions): Promise<Stores> {
  const { stackDir, dirOf, children, log } = options;
  const source = await findMongod(children, log);
  await ensurePrograms([...kafkaPrograms(), ...mongodbPrograms(source), REDIS], children, log);
  const [port = 0, controllerPort = 0, mongodbPort = 0, redisPort = 0] = await freePorts(4);
  const clusterId = newClusterId();
  const logOf = (name: StoreName) => join(stackDir, 'logs', `${name}.log`);
  const shared = (name: StoreName) => ({ dir: dirOf(name), children, logPath: logOf(name), log });
  const [kafka, mongodb, redis] = await Promise.all([
    openStore(() => startKafka({ ...shared('kafka'), port, controllerPort, clusterId })),
    openStore(() => startMongodb({ ...shared('mongodb'), port: mongodbPort, stackDir, source })),
    openStore(() => startRedis({ ...shared('redis'), port: redisPort })),
  ]);
  const addresses = {
    kafkaBrokers: `127.0.0.1:${port}`,
    mongodbUrl: `mongodb://127.0.0.1:${mongodbPort}/posthorn?replicaSet=rs0`,
    redisUrl: `redis://127.0.0.1:${redisPort}`,
  };
  const startSecondBroker = (): Promise<Store> =>
    startBroker({ ...shared('kafka'), clusterId, controllerPort });
  return { addresses, kafka, mongodb, redis, startSecondBroker };
}

interface BrokerOptions {
  /** Of the first broker. */
  dir: string;
  logPath: string;
  clusterId: string;
  controllerPort: number;
  children: Children;
  log: (line: string) => void;
}

async function startBroker({
  dir,
  logPath,
  controllerPort,
  ...shared
}: BrokerOptions): Promise<Store> {
  const [port = 0] = await freePorts(1);
  const properties = secondBroker({ port, controllerPort });
  const own = { dir: join(dir, 'second'), logPath: logPath.replace('kafka', 'kafka-2') };
  return openStore(() =>
    startKafka({ ...shared, ...own, port, controllerPort, properties, name: 'kafka-2' }),
  );
}

/** A store that can be suspended, killed and started again on its data. */
export interface Store {
  pid: () => number;
  /** Suspends the process with SIGSTOP. */
  freeze: () => void;
  /** Resumes it. */
  thaw: () => void;
  /** SIGKILL, like the loss of its machine. */
  kill: () => Promise<void>;
  /** Shuts it down in order. */
  stop: () => Promise<void>;
  /** Starts it again after it was killed or stopped; resolves when it serves requests. */
  start: () => Promise<void>;
}

/** Starts a store; `launch` must find the data of the last start. */
async function openStore(launch: () => Promise<Child>): Promise<Store> {
  let child = await launch();
  return {
    pid: () => child.pid,
    freeze: () => {
      signalGroup(child.pid, 'SIGSTOP');
    },
    thaw: () => {
      signalGroup(child.pid, 'SIGCONT');
    },
    kill: () => child.kill(),
    stop: () => child.stop(),
    async start() {
      child = await launch();
    },
  };
}

/** A file system in memory whose size is limited: it can be full without harm to the machine. */
export interface SmallDisk {
  path: string;
  /** Takes all that is free. */
  fill: () => void;
  /** Frees what `fill` took. */
  free: () => void;
  unmount: () => void;
}

const FILLER = 'filler';
const PIECE_BYTES = 64 * 1_024;

/** Throws where this process may not mount. */
export function mountSmallDisk(path: string, mebibytes: number): SmallDisk {
  unmountIfMounted(path);
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path], {
      stdio: 'pipe',
    });
  } catch {
    throw new StackError('This round needs to mount a small file system, which only root may do.');
  }
  const filler = join(path, FILLER);
  return {
    path,
    fill: () => {
      fill(filler, path);
    },
    free: () => {
      rmSync(filler, { force: true });
    },
    unmount: () => {
      unmountIfMounted(path);
    },
  };
}

/** Also after a run that was killed. Files that a process still has open there are removed when it exits. */
export function unmountIfMounted(path: string): void {
  try {
    execFileSync('umount', ['-l', path], { stdio: 'pipe' });
  } catch {
    // Not mounted.
  }
}

/** Another process may write meanwhile and take the last piece: the disk is full then too. */
function fill(filler: string, path: string): void {
  const piece = Buffer.alloc(PIECE_BYTES);
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(path);
      if (bavail === 0) return;
      const rest = piece.subarray(0, Math.min(piece.length, bavail * bsize));
      writeFileSync(filler, rest, { flag: 'a' });
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
