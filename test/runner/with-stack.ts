import { hash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../tools/local-stack/machine/ports.ts';
import { startBackingServices } from '../../tools/local-stack/stores/backing-services.ts';
import { createChildren } from '../../tools/local-stack/processes/children.ts';
import { takeLock } from '../../tools/local-stack/processes/lock.ts';
import { endOrphans } from '../../tools/local-stack/supervisor/end-orphans.ts';
import { ROOT } from './program.ts';

/**
 * Starts Kafka, MongoDB and Redis in a scratch folder on free ports, apart from a stack that runs,
 * and stops them after the work. The folder belongs to this checkout, so that what a killed run left
 * behind is found and ended.
 */
export async function withStack(
  work: (addresses: Record<string, string>) => Promise<void>,
): Promise<void> {
  const stackDir = join(tmpdir(), `posthorn-test-${hash('sha1', join(ROOT, 'test'))}`);
  mkdirSync(stackDir, { recursive: true });
  const lock = takeLock(stackDir, 'npm test');
  await endOrphans(stackDir, say);
  const [kafka = 0, kafkaController = 0, mongodb = 0, redis = 0] = await freePorts(4);
  const ports = { kafka, kafkaController, mongodb, redis };
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
  const stack = await startBackingServices({ stackDir, ports, log: say, children });
  try {
    await work({
      KAFKA_BROKERS: stack.kafkaBrokers,
      MONGODB_URL: stack.mongodbUrl,
      REDIS_URL: stack.redisUrl,
    });
  } finally {
    await stack.stop();
    await stop();
  }
}

function say(line: string): void {
  console.log(line);
}
