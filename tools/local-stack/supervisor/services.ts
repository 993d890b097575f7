import { join } from 'node:path';
import { existsSync, globSync } from 'node:fs';
import { type Child, failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { type Addresses, type Settings, readStackDir } from '../settings.ts';
import { waitUntil } from '../waiting.ts';
import { ENTRIES } from '../../../deploy/posthorn.ts';
import { createEncryptionKeys } from '../../../deploy/setup/create-encryption-keys.ts';

/** What every installation has. */
export const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;
export type UsualService = (typeof SERVICES)[number];
/** `ingest` runs where topics are accepted as messages. In the order of their management ports. */
export const ALL_SERVICES = [...SERVICES, 'ingest'] as const;
export type ServiceName = (typeof ALL_SERVICES)[number];

const ROOT = join(import.meta.dirname, '../../..');

/** Longer than a service needs to stop: at most 25 s to drain and 10 s to close. */
const STOP_TIMEOUT_MS = 40_000;

export function opsPortOf(name: ServiceName, firstOpsPort: number): number {
  return firstOpsPort + ALL_SERVICES.indexOf(name);
}

export function entryOf(name: ServiceName): string {
  return join(ROOT, ENTRIES[name]);
}

/**
 * Limits the young generation. With 24 GiB of memory V8 uses 128 MiB for it, with this flag 32 MiB. The image has the
 * same flag (docs/performance.md, Memory).
 */
const YOUNG_GENERATION = '--max-semi-space-size=16';
/** What fits into a pod. V8 also collects earlier if the heap is limited. */
const OLD_GENERATION = '--max-old-space-size=384';

export const NODE_FLAGS = [
  YOUNG_GENERATION,
  OLD_GENERATION,
  '--disable-warning=ExperimentalWarning',
];

/** Returns the environment of every program of Posthorn on this stack. Settings of the user take precedence. */
export function programEnv(addresses: Addresses): NodeJS.ProcessEnv {
  const defaults = {
    EGRESS_ALLOW_LOOPBACK: 'true',
    EGRESS_ALLOW_HTTP: 'true',
    // Every receiver is on this machine.
    HOST_ATTEMPTS_PER_SECOND: '0',
    // A company has only to make its topic.
    INGEST_COMPANY_TOPICS: 'true',
    // The local Kafka has one node.
    TOPIC_REPLICATION: '1',
    // Compiling the sources is a quarter of the processor time of a start.
    NODE_COMPILE_CACHE: join(readStackDir(process.env), 'compiled'),
    ...allocatorEnv(),
  };
  const { kafkaBrokers, mongodbUrl, redisUrl } = addresses;
  return {
    ...defaults,
    ...process.env,
    ...encryptionEnv(process.env),
    KAFKA_BROKERS: kafkaBrokers,
    MONGODB_URL: mongodbUrl,
    REDIS_URL: redisUrl,
  };
}

/** Which processes of the services are started. */
interface ServiceProcesses {
  services: readonly ServiceName[];
  /** 1 for the first process of a service; a further one needs other ports. */
  number: number;
  /** Settings of these processes, over those of the user. */
  env?: Readonly<Record<string, string>>;
}

const FIRST: ServiceProcesses = { services: ALL_SERVICES, number: 1 };

/** The name of a process of a service: "gateway", "gateway-2". */
export function processNameOf(service: ServiceName, number: number): string {
  return number === 1 ? service : `${service}-${number}`;
}

/** Starts the services at the same time, and waits until all are ready. */
export async function startServices(
  settings: Settings,
  addresses: Addresses,
  children: Children,
  { services, number, env = {} }: ServiceProcesses = FIRST,
): Promise<void> {
  const starting = services.map((service) => {
    const name = processNameOf(service, number);
    return startService(service, { ...settings, name, env }, addresses, children);
  });
  await Promise.all(starting);
}

async function startService(
  service: ServiceName,
  settings: Settings & { name: string; env: Readonly<Record<string, string>> },
  addresses: Addresses,
  children: Children,
): Promise<void> {
  const { name } = settings;
  const opsPort = opsPortOf(service, settings.opsPort);
  const child = children.start({
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, entryOf(service)],
    env: {
      ...programEnv(addresses),
      ...settings.env,
      HOST: settings.host,
      PORT: String(settings.gatewayPort),
      OPS_PORT: String(opsPort),
    },
    cwd: ROOT,
    port: service === 'gateway' ? settings.gatewayPort : opsPort,
    logPath: join(settings.stackDir, 'logs', `${name}.log`),
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
  await waitUntilReady(child, opsPort);
}

async function waitUntilReady(child: Child, opsPort: number): Promise<void> {
  const poll = {
    what: `${child.name} to be ready (log: ${child.log})`,
    timeoutMs: 60_000,
    intervalMs: 100,
  };
  await failOnExit(
    child,
    waitUntil(poll, () => isReady(opsPort)),
  );
}

async function isReady(opsPort: number): Promise<boolean> {
  try {
    const url = `http://127.0.0.1:${opsPort}/readyz`;
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    return response.status === 200;
  } catch {
    return false;
  }
}

const JEMALLOC = 'libjemalloc.so.2';
const FOLDERS = ['/usr/lib/*-linux-gnu', '/usr/lib64', '/usr/lib'];

/**
 * Returns the settings of the memory allocator, which are those of the image. After a burst glibc keeps 120 to 146 MiB
 * of freed memory; jemalloc keeps none (docs/performance.md, Memory). Debian's Redis package installs jemalloc. Without
 * it, glibc is limited to two arenas instead of one per thread.
 */
export function allocatorEnv(hasLibrary = isInstalled): Record<string, string> {
  if (!hasLibrary(JEMALLOC)) return { MALLOC_ARENA_MAX: '2' };
  return {
    LD_PRELOAD: JEMALLOC,
    MALLOC_CONF: 'background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0',
  };
}

/** The dynamic loader searches these folders for a name without a path. */
function isInstalled(library: string): boolean {
  return FOLDERS.flatMap((folder) => globSync(folder)).some((folder) =>
    existsSync(`${folder}/${library}`),
  );
}

/** Returns the key setting of this stack: none if the user has set one, else a random key, created once per folder. */
export function encryptionEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  if (env.ENCRYPTION_KEYS || env.ENCRYPTION_KEYS_FILE) return {};
  const path = join(readStackDir(env), 'encryption-keys');
  createEncryptionKeys(path);
  return { ENCRYPTION_KEYS_FILE: path };
}
