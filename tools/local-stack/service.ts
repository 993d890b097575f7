import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { execOnStack } from './supervisor/exec-program.ts';
import {
  entryOf,
  NODE_FLAGS,
  opsPortOf,
  programEnv,
  type ServiceName,
  ALL_SERVICES,
} from './supervisor/services.ts';
import { findAddresses } from './supervisor/stack-file.ts';

const DEFAULT_OPS_PORT = 9_101;
const CREATE_TOPICS = join(import.meta.dirname, '../../deploy/setup/create-topics.ts');
const name = ALL_SERVICES.find((service) => service === process.argv[2]);

if (name === undefined) {
  console.error(`Name one service: ${ALL_SERVICES.join(', ')}`);
  process.exitCode = 1;
} else {
  createTopics();
  runService(name);
}

/**
 * The stack created the topics for its own RETRY_DELAYS and DEFERRAL_DELAYS, but this service may have others. Errors are
 * ignored here: the service fails with the same error, and reports it together with all other configuration errors.
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
  execOnStack(entryOf(service), process.argv.slice(3), ports);
}
