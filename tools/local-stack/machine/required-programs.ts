import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { findProgram } from './find-program.ts';

/** A program that is needed without Docker, and its package by package manager. */
export interface RequiredProgram {
  name: string;
  /** Completes a sentence whose subject is the program. */
  purpose: string;
  packages: Record<PackageManager, string | undefined>;
  isInstalled(): boolean;
}

export type PackageManager = 'apt' | 'dnf' | 'brew';

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
