import { hash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, startBackingServices } from '../tools/local-stack/stores/backing-services.ts';
import { createChildren } from '../tools/local-stack/processes/children.ts';
import { takeLock } from '../tools/local-stack/processes/lock.ts';
import { endOrphans } from '../tools/local-stack/processes/recover.ts';
import { readSettings } from '../tools/local-stack/settings.ts';
import { createTally, type Tally } from './support/tally.ts';

/** Everything that `npm test` promises: lint, types, unit, integration, end to end, on real parts. */
async function runAll(tally: Tally): Promise<void> {
  // What is wrong with the settings is said at once, not after the parts that need no stack.
  readSettings(process.env);
  await tally.check('lint', ['node_modules/eslint/bin/eslint.js', '.']);
  await tally.check('format', ['node_modules/prettier/bin/prettier.cjs', '--check', '.']);
  await tally.check('types', ['node_modules/typescript/bin/tsc', '--noEmit']);
  await tally.jest('unit', {});
  await withStack(async (addresses) => {
    await tally.jest('integration', addresses);
    await tally.jest('e2e', addresses);
  });
}

/**
 * A stack of its own in a scratch folder on free ports: nothing of a running one is touched. The
 * folder belongs to this checkout, so that what a killed run left behind is found and ended.
 */
async function withStack(work: (addresses: Record<string, string>) => Promise<void>) {
  const stackDir = join(tmpdir(), `posthorn-test-${hash('sha1', import.meta.dirname)}`);
  mkdirSync(stackDir, { recursive: true });
  const lock = takeLock(stackDir, 'npm test');
  await endOrphans(stackDir, say);
  const [kafka = 0, kafkaController = 0, mongodb = 0, redis = 0] = await freePorts(4);
  const ports = { kafka, kafkaController, mongodb, redis };
  const children = createChildren(stackDir);
  const stop = async (): Promise<void> => {
    await children.stopAll();
    lock.release();
    rmSync(stackDir, { recursive: true, force: true });
  };
  // Before anything starts, so that a Ctrl-C during the start leaves nothing behind.
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

const tally = createTally();
try {
  await runAll(tally);
} catch (error) {
  tally.fail(error instanceof Error ? error.message : String(error));
} finally {
  process.exitCode = tally.report();
}
