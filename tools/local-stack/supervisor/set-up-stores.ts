import { join } from 'node:path';
import type { Children } from '../processes/children.ts';
import type { Addresses } from '../settings.ts';
import { NODE_FLAGS, programEnv } from './services.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Creates missing topics and indexes with the same programs as in production. */
export async function setUpStores(addresses: Addresses, children: Children): Promise<void> {
  await Promise.all([
    runProgram('Creating the topics', 'deploy/setup/create-topics.ts', [], addresses, children),
    runProgram('Creating the indexes', 'deploy/setup/create-indexes.ts', [], addresses, children),
  ]);
}

/** Runs a program of Posthorn on the stack and returns its standard output. Throws if it fails. */
export async function runProgram(
  name: string,
  entry: string,
  args: readonly string[],
  addresses: Addresses,
  children: Children,
): Promise<string> {
  return children.run({
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, join(ROOT, entry), ...args],
    env: programEnv(addresses),
    cwd: ROOT,
  });
}
