import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { replaceBy } from './supervisor/replace.ts';
import {
  entryOf,
  NODE_FLAGS,
  opsPortOf,
  programEnv,
  type ServiceName,
  SERVICES,
} from './supervisor/services.ts';
import { findAddresses } from './supervisor/stack-file.ts';

const DEFAULT_OPS_PORT = 9_101;
const CREATE_TOPICS = join(import.meta.dirname, '../../deploy/setup/create-topics.ts');
const name = SERVICES.find((service) => service === process.argv[2]);

if (name === undefined) {
  console.error(`Name one service: ${SERVICES.join(', ')}`);
  process.exitCode = 1;
} else {
  createTopics();
  runService(name);
}

/**
 * The stack made the topics of its own RETRY_DELAYS and DEFERRAL_DELAYS; this service may have been given others. What
 * goes wrong here the service meets again, and reports together with everything else that is wrong.
 */
function createTopics(): void {
  try {
    const env = programEnv(findAddresses(process.env));
    spawnSync(process.execPath, [...NODE_FLAGS, CREATE_TOPICS], { env, stdio: 'ignore' });
  } catch {
    return;
  }
}

function runService(service: ServiceName): void {
  const ports = { OPS_PORT: String(opsPortOf(service, DEFAULT_OPS_PORT)) };
  replaceBy(entryOf(service), process.argv.slice(3), ports);
}
