import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { StackError } from '../stack-error.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';

/** A program that is needed without Docker, and its package by package manager. */
export interface RequiredProgram {
  name: string;
  /** Completes a sentence whose subject is the program. */
  purpose: string;
  packages: Record<PackageManager, string | undefined>;
  isInstalled(): boolean;
}

type PackageManager = 'apt' | 'dnf' | 'brew';

/** Kafka 4 brokers need Java 17. */
const MIN_JAVA = 17;

export const JAVA: RequiredProgram = {
  name: `java (${MIN_JAVA} or later)`,
  purpose: 'runs Kafka',
  packages: { apt: debianJava(), dnf: 'java-21-openjdk-headless', brew: 'openjdk' },
  isInstalled: () => javaMajor() >= MIN_JAVA,
};

export const MAVEN: RequiredProgram = {
  name: 'mvn',
  purpose: 'downloads Kafka',
  packages: { apt: 'maven', dnf: 'maven', brew: 'maven' },
  isInstalled: () => findProgram('mvn') !== undefined,
};

export const REDIS: RequiredProgram = {
  name: 'redis-server (or valkey-server)',
  purpose: 'is the Redis of the stack',
  packages: { apt: 'redis-server', dnf: 'valkey', brew: 'redis' },
  isInstalled: () => redisServer() !== undefined,
};

export const WINE: RequiredProgram = {
  name: 'wine64',
  purpose: 'runs MongoDB for Windows, the only build that can be downloaded here',
  packages: { apt: 'wine64', dnf: undefined, brew: undefined },
  isInstalled: () => wine64() !== undefined,
};

export const MONGOD: RequiredProgram = {
  name: 'mongod',
  purpose: 'is the MongoDB of the stack, and whose official build cannot be downloaded here',
  packages: { apt: undefined, dnf: undefined, brew: 'mongodb/brew/mongodb-community@7.0' },
  isInstalled: () => findProgram('mongod') !== undefined,
};

/** Chromium without windows, for tests. Debian's package has its name. */
export const BROWSER = 'chromium-headless-shell';

export function javaProgram(): string {
  const home = process.env.JAVA_HOME;
  return findProgram('java', home === undefined ? [] : [`${home}/bin`]) ?? 'java';
}

export function redisServer(): string | undefined {
  return findProgram('redis-server') ?? findProgram('valkey-server');
}

/** Debian installs wine outside PATH. */
const WINE_FOLDERS = ['/usr/lib/wine'];

export function wine64(): string | undefined {
  return findProgram('wine64', WINE_FOLDERS);
}

export function wineserver(): string | undefined {
  return findProgram('wineserver64', WINE_FOLDERS) ?? findProgram('wineserver', WINE_FOLDERS);
}

function javaMajor(): number {
  const { stderr } = spawnSync(javaProgram(), ['-XshowSettings:properties', '-version'], {
    encoding: 'utf8',
    timeout: 10_000,
  });
  // Contrary to its type, stderr is null if there is no such program.
  return majorOf(stderr);
}

/** Returns the major version in the output of `java -XshowSettings:properties`; 0 if it has none. */
export function majorOf(settings: string): number {
  return Number(/java\.specification\.version = (\d+)/.exec(settings)?.[1] ?? 0);
}

/** Returns the package of Java 17 on releases whose default Java is older. */
function debianJava(): string {
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const hasOldDefault = /VERSION_CODENAME=(bullseye|focal|jammy)\b/.test(release);
  return hasOldDefault ? 'openjdk-17-jre-headless' : 'default-jre-headless';
}

/** Returns the path of a program in one of the extra folders or in PATH; undefined if there is none. */
export function findProgram(
  name: string,
  extraFolders: readonly string[] = [],
): string | undefined {
  const folders = [...extraFolders, ...(process.env.PATH ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

interface Machine {
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
