import { hash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../tools/local-stack/machine/ports.ts';
import { startBackingServices } from '../../tools/local-stack/stores/backing-services.ts';
import { type Children, createChildren } from '../../tools/local-stack/processes/children.ts';
import { takeLock } from '../../tools/local-stack/processes/lock.ts';
import { endOrphans } from '../../tools/local-stack/supervisor/end-orphans.ts';
import { startSecuredStack } from '../support/stores/secured-stack.ts';
import { ROOT } from './program.ts';

/** Stores that run. */
interface Stack {
  /** The addresses of the stores for tests and services, and how they are reached. */
  env: Record<string, string>;
  /** Throws when a store had to refuse something that a service needs. */
  verify: () => Promise<void>;
  stop: () => Promise<void>;
}

/**
 * Starts Kafka, MongoDB and Redis in a scratch folder on free ports, apart from a stack that runs,
 * and stops them after the work. The folder belongs to this checkout, so that what a killed run left
 * behind is found and ended. `isSecured`: with TLS, logins and ACLs.
 */
export async function withStack(
  work: (env: Record<string, string>) => Promise<void>,
  isSecured: boolean,
): Promise<void> {
  const stackDir = join(tmpdir(), `posthorn-test-${hash('sha1', join(ROOT, 'test'))}`);
  mkdirSync(stackDir, { recursive: true });
  const lock = takeLock(stackDir, 'npm test');
  await endOrphans(stackDir, say);
  const children = createChildren(stackDir);
  // A broker that lives for minutes does not earn back what its optimising compiler takes.
  process.env.JDK_JAVA_OPTIONS ??= '-XX:TieredStopAtLevel=1';
  const stop = async (): Promise<void> => {
    await children.stopAll();
    lock.release();
    rmSync(stackDir, { recursive: true, force: true });
  };
  // Before anything starts, so that Ctrl-C during the start leaves nothing behind.
  const end = (): void => void stop().then(() => process.exit(130));
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    const stack = await (isSecured ? startSecuredStack : startPlain)(stackDir, children, say);
    try {
      await work(stack.env);
      await stack.verify();
    } finally {
      await stack.stop();
    }
  } finally {
    await stop();
    process.removeListener('SIGINT', end).removeListener('SIGTERM', end);
  }
}

async function startPlain(
  stackDir: string,
  children: Children,
  log: (line: string) => void,
): Promise<Stack> {
  const [kafka = 0, kafkaController = 0, mongodb = 0, redis = 0] = await freePorts(4);
  const ports = { kafka, kafkaController, mongodb, redis };
  const stack = await startBackingServices({
    stackDir,
    ports,
    log,
    children,
  });
  const { kafkaBrokers, mongodbUrl, redisUrl } = stack;
  return {
    env: { KAFKA_BROKERS: kafkaBrokers, MONGODB_URL: mongodbUrl, REDIS_URL: redisUrl },
    verify: () => Promise.resolve(),
    stop: () => stack.stop(),
  };
}

function say(line: string): void {
  console.log(line);
}
