import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { findProgram } from './on-path.ts';

/** A program the native way needs, and what each kind of machine calls the package that holds it. */
export interface Part {
  name: string;
  why: string;
  packages: Record<PackageManager, string | undefined>;
  isThere(): boolean;
}

export type PackageManager = 'apt' | 'dnf' | 'brew';

/** Kafka 4 brokers run on Java 17 or later. */
const MIN_JAVA = 17;

export const JAVA: Part = {
  name: `java (${MIN_JAVA} or later)`,
  why: 'runs Kafka',
  packages: { apt: debianJava(), dnf: 'java-21-openjdk-headless', brew: 'openjdk' },
  isThere: () => javaMajor() >= MIN_JAVA,
};

export const MAVEN: Part = {
  name: 'mvn',
  why: 'downloads Kafka',
  packages: { apt: 'maven', dnf: 'maven', brew: 'maven' },
  isThere: () => findProgram('mvn') !== undefined,
};

export const REDIS: Part = {
  name: 'redis-server (or valkey-server)',
  why: 'is the Redis of the stack',
  packages: { apt: 'redis-server', dnf: 'valkey', brew: 'redis' },
  isThere: () => redisServer() !== undefined,
};

export const WINE: Part = {
  name: 'wine64',
  why: 'runs MongoDB for Windows, the only build that package registries alone provide',
  packages: { apt: 'wine64', dnf: undefined, brew: undefined },
  isThere: () => wine64() !== undefined,
};

export const MONGOD: Part = {
  name: 'mongod',
  why: 'is the MongoDB of the stack, and its official build cannot be downloaded from here',
  packages: { apt: undefined, dnf: undefined, brew: 'mongodb/brew/mongodb-community@7.0' },
  isThere: () => findProgram('mongod') !== undefined,
};

export function javaProgram(): string {
  const home = process.env.JAVA_HOME;
  return findProgram('java', home === undefined ? [] : [`${home}/bin`]) ?? 'java';
}

export function redisServer(): string | undefined {
  return findProgram('redis-server') ?? findProgram('valkey-server');
}

/** Debian keeps it out of PATH. */
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
  // null, whatever its type says, when there is no such program.
  return majorOf(stderr);
}

export function majorOf(settings: string): number {
  return Number(/java\.specification\.version = (\d+)/.exec(settings)?.[1] ?? 0);
}

/** Releases whose default Java is older than Kafka needs have a newer one under its own name. */
function debianJava(): string {
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const hasOldDefault = /VERSION_CODENAME=(bullseye|focal|jammy)\b/.test(release);
  return hasOldDefault ? 'openjdk-17-jre-headless' : 'default-jre-headless';
}
