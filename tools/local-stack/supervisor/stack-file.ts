import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackProcess } from '../processes/child.ts';
import { writeFileAtomically } from '../processes/children.ts';
import { type Addresses, readGivenAddresses, readStackDir } from '../settings.ts';
import { StackError } from '../stack-error.ts';

/** The content of stack.json: processes and addresses, for users, tests and commands in other terminals. */
export interface StackFile extends Addresses {
  processes: StackProcess[];
}

function stackFilePath(stackDir: string): string {
  return join(stackDir, 'stack.json');
}

export function writeStackFile(stackDir: string, file: StackFile): void {
  // A given address may have a password.
  writeFileAtomically(stackFilePath(stackDir), `${JSON.stringify(file, null, 2)}\n`, 0o600);
}

export function removeStackFile(stackDir: string): void {
  rmSync(stackFilePath(stackDir), { force: true });
}

/** Returns the addresses in the environment, or else those of the running stack. Throws if there is neither. */
export function findAddresses(env: NodeJS.ProcessEnv): Addresses {
  const given = readGivenAddresses(env);
  const { kafkaBrokers, mongodbUrl, redisUrl } = given;
  if (kafkaBrokers && mongodbUrl && redisUrl) return { kafkaBrokers, mongodbUrl, redisUrl };
  return { ...addressesOfRunningStack(readStackDir(env)), ...given };
}

function addressesOfRunningStack(stackDir: string): Addresses {
  try {
    return JSON.parse(readFileSync(stackFilePath(stackDir), 'utf8')) as StackFile;
  } catch {
    throw new StackError(
      `No stack is running in ${stackDir}. Start one with "npm run stack" (or "npm start") in another terminal, ` +
        'or set KAFKA_BROKERS, MONGODB_URL and REDIS_URL.',
    );
  }
}
