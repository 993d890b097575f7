import { join } from 'node:path';
import { type Child, failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import type { Addresses, Settings } from '../settings.ts';
import { waitUntil } from '../waiting.ts';
import { allocatorEnv } from './allocator.ts';
import { encryptionEnv } from './encryption.ts';

export const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;
export type ServiceName = (typeof SERVICES)[number];

const ROOT = join(import.meta.dirname, '../../..');

/** Longer than a service needs to stop: at most 25 s to drain and 10 s to close. */
const STOP_TIMEOUT_MS = 40_000;

export function opsPortOf(name: ServiceName, firstOpsPort: number): number {
  return firstOpsPort + SERVICES.indexOf(name);
}

export function entryOf(name: ServiceName): string {
  return join(ROOT, `services/${name}/src/main.ts`);
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
    // The local Kafka has one node.
    TOPIC_REPLICATION: '1',
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

/** Starts the three services at the same time, and waits until all are ready. */
export async function startServices(
  settings: Settings,
  addresses: Addresses,
  children: Children,
): Promise<void> {
  await Promise.all(SERVICES.map((name) => startService(name, settings, addresses, children)));
}

async function startService(
  name: ServiceName,
  settings: Settings,
  addresses: Addresses,
  children: Children,
): Promise<void> {
  const opsPort = opsPortOf(name, settings.opsPort);
  const child = children.start({
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, entryOf(name)],
    env: {
      ...programEnv(addresses),
      HOST: settings.host,
      PORT: String(settings.gatewayPort),
      OPS_PORT: String(opsPort),
    },
    cwd: ROOT,
    port: name === 'gateway' ? settings.gatewayPort : opsPort,
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
