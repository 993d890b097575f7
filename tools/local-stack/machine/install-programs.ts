import { StackError } from '../stack-error.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';
import { findProgram } from './find-program.ts';
import type { PackageManager, RequiredProgram } from './required-programs.ts';

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

/** Installs the missing programs. Throws with a list of all of them if they cannot be installed. */
export async function ensurePrograms(
  programs: readonly RequiredProgram[],
  children: Children,
  log: Log,
): Promise<void> {
  const missing = programs.filter((program) => !program.isInstalled());
  if (missing.length === 0) return;
  const machine = thisMachine();
  if (!canInstall(missing, machine)) throw new StackError(missingMessage(missing, machine));
  await aptInstall(missing, children, log);
  const stillMissing = missing.filter((program) => !program.isInstalled());
  if (stillMissing.length > 0) throw new StackError(missingMessage(stillMissing, machine));
}

export function canInstall(missing: readonly RequiredProgram[], machine: Machine): boolean {
  const haveAllPackages = missing.every((program) => program.packages.apt !== undefined);
  return machine.isRoot && machine.manager === 'apt' && haveAllPackages;
}

async function aptInstall(
  missing: readonly RequiredProgram[],
  children: Children,
  log: Log,
): Promise<void> {
  const packages = missing.map(packageName);
  log('Installing missing programs with apt-get:');
  for (const program of missing) {
    log(`  ${packageName(program)} (${program.name} ${program.purpose})`);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = async (...args: string[]) =>
    children.run({ name: `apt-get ${args[0] ?? ''}`, command: 'apt-get', args: [...args], env });
  await apt('update', '-q');
  await apt('install', '-y', '-q', '--no-install-recommends', ...packages);
}

function packageName({ packages, name }: RequiredProgram): string {
  return packages.apt ?? name;
}

export function missingMessage(missing: readonly RequiredProgram[], machine: Machine): string {
  return [
    'Nothing was started, because these programs are missing:',
    ...missing.map(
      (program) =>
        `  ${program.name}, which ${program.purpose}: ${installCommand(program, machine)}`,
    ),
    'Alternatively, start Docker and run this again, or set KAFKA_BROKERS, MONGODB_URL and REDIS_URL to the addresses',
    'of running services.',
  ].join('\n');
}

function installCommand(program: RequiredProgram, machine: Machine): string {
  const name = machine.manager === undefined ? undefined : program.packages[machine.manager];
  if (name === undefined) return 'install it and add it to PATH';
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
