import { StackError } from '../stack-error.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';
import { findProgram } from './on-path.ts';
import type { PackageManager, Part } from './parts.ts';

export interface Machine {
  manager: PackageManager | undefined;
  isRoot: boolean;
}

export function thisMachine(): Machine {
  return { manager: packageManager(), isRoot: process.getuid?.() === 0 };
}

function packageManager(): PackageManager | undefined {
  if (findProgram('apt-get') !== undefined) return 'apt';
  if (findProgram('brew') !== undefined) return 'brew';
  return findProgram('dnf') === undefined ? undefined : 'dnf';
}

/** Makes all parts present or throws naming all that are not, before anything is started. */
export async function provideParts(
  parts: readonly Part[],
  children: Children,
  log: Log,
): Promise<void> {
  const missing = parts.filter((part) => !part.isThere());
  if (missing.length === 0) return;
  const machine = thisMachine();
  if (!canInstall(missing, machine)) throw new StackError(missingMessage(missing, machine));
  await aptInstall(missing, children, log);
  const stillMissing = missing.filter((part) => !part.isThere());
  if (stillMissing.length > 0) throw new StackError(missingMessage(stillMissing, machine));
}

export function canInstall(missing: readonly Part[], machine: Machine): boolean {
  const areAllPackaged = missing.every((part) => part.packages.apt !== undefined);
  return machine.isRoot && machine.manager === 'apt' && areAllPackaged;
}

async function aptInstall(missing: readonly Part[], children: Children, log: Log): Promise<void> {
  const packages = missing.map((part) => part.packages.apt ?? part.name);
  log('Installing with apt-get, because they are missing on this machine:');
  for (const part of missing) log(`  ${part.packages.apt ?? part.name} (${part.name} ${part.why})`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = async (...args: string[]) =>
    children.run({ name: `apt-get ${args[0] ?? ''}`, command: 'apt-get', args: [...args], env });
  await apt('update', '-q');
  await apt('install', '-y', '-q', '--no-install-recommends', ...packages);
}

export function missingMessage(missing: readonly Part[], machine: Machine): string {
  return [
    'Missing on this machine; nothing was started:',
    ...missing.map((part) => `  ${part.name}, which ${part.why}: ${howToInstall(part, machine)}`),
    'Or let Docker provide all of them (start it, then run this again), or give the addresses of running services',
    'in KAFKA_BROKERS, MONGODB_URL and REDIS_URL.',
  ].join('\n');
}

function howToInstall(part: Part, machine: Machine): string {
  const name = machine.manager === undefined ? undefined : part.packages[machine.manager];
  if (name === undefined) return 'install it so that it is on PATH';
  switch (machine.manager) {
    case 'apt':
      return `${machine.isRoot ? '' : 'sudo '}apt-get install --no-install-recommends ${name}`;
    case 'dnf':
      return `${machine.isRoot ? '' : 'sudo '}dnf install ${name}`;
    case 'brew':
    case undefined:
      return `brew install ${name}`;
  }
}
