import { join } from 'node:path';
import { type Child, orItsDeath } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import type { Addresses, Settings } from '../settings.ts';
import { until } from '../waiting.ts';
import { encryptionEnv } from './encryption.ts';

export const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;
export type ServiceName = (typeof SERVICES)[number];

const ROOT = join(import.meta.dirname, '../../..');

/** Longer than a service takes at most: 25 s of draining and 10 s of closing. */
const STOP_TIMEOUT_MS = 40_000;

export function opsPortOf(name: ServiceName, firstOpsPort: number): number {
  return firstOpsPort + SERVICES.indexOf(name);
}

export function entryOf(name: ServiceName): string {
  return join(ROOT, `services/${name}/src/main.ts`);
}

/**
 * The young generation: with 24 GiB of memory V8 takes 128 MiB for it, with this 32. As in the image,
 * see docs/performance.md (Memory).
 */
const YOUNG_GENERATION = '--max-semi-space-size=16';
/** What the pods have room for; V8 also collects earlier where the heap may grow less. */
const OLD_GENERATION = '--max-old-space-size=384';

export const NODE_FLAGS = [
  YOUNG_GENERATION,
  OLD_GENERATION,
  '--disable-warning=ExperimentalWarning',
];

/** What every program of Posthorn gets on this stack. What the user has set wins. */
export function programEnv(addresses: Addresses): NodeJS.ProcessEnv {
  const defaults = {
    EGRESS_ALLOW_LOOPBACK: 'true',
    EGRESS_ALLOW_HTTP: 'true',
    // The local Kafka is one node.
    TOPIC_REPLICATION: '1',
    // Each thread of libuv has an arena of its own otherwise, and what it freed stays there.
    MALLOC_ARENA_MAX: '2',
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

/** Starts the three side by side and resolves when all are ready. */
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
  await ready(child, opsPort);
}

async function ready(child: Child, opsPort: number): Promise<void> {
  const poll = {
    what: `${child.name} becoming ready (its log: ${child.log})`,
    timeoutMs: 60_000,
    intervalMs: 100,
  };
  await orItsDeath(
    child,
    until(poll, () => answersReady(opsPort)),
  );
}

async function answersReady(opsPort: number): Promise<boolean> {
  try {
    const url = `http://127.0.0.1:${opsPort}/readyz`;
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    return response.status === 200;
  } catch {
    return false;
  }
}
