import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { thisMachine, findProgram } from '../../local-stack/machine/required-programs.ts';
import { runProgram } from './run-program.ts';

const APT_TIMEOUT_MS = 600_000;

export class MissingProgramsError extends Error {
  override readonly name = 'MissingProgramsError';
}

/** Installs the missing programs. Throws MissingProgramsError if they cannot be installed. */
export async function ensurePrograms(
  programs: readonly NeededProgram[],
  progress: (line: string) => void,
): Promise<void> {
  const missing = programs.filter((program) => pathOf(program) === undefined);
  if (missing.length === 0) return;
  const { isRoot, manager } = thisMachine();
  if (!isRoot || manager !== 'apt') throw new MissingProgramsError(missingMessage(missing));
  const packages = [...new Set(missing.map(({ aptPackage }) => aptPackage))];
  progress(`installing with apt-get: ${packages.join(' ')}`);
  await withoutStartingServices(() => aptInstall(packages));
  const stillMissing = missing.filter((program) => pathOf(program) === undefined);
  if (stillMissing.length > 0) throw new MissingProgramsError(missingMessage(stillMissing));
}

async function aptInstall(packages: readonly string[]): Promise<void> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  // Another run may install at the same time.
  const apt = async (...args: string[]): Promise<string> =>
    runProgram('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=300', ...args], {
      env,
      timeoutMs: APT_TIMEOUT_MS,
    });
  try {
    await apt('update');
    await apt('install', '-y', '--no-install-recommends', ...packages);
  } catch (error) {
    throw new MissingProgramsError(error instanceof Error ? error.message : String(error));
  }
}

/** A program that a check runs and that npm does not install. */
export interface NeededProgram {
  /** As it is called on the command line. */
  name: string;
  /** Debian's package. */
  aptPackage: string;
}

/** Root's folders are not in the PATH of every shell. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];

/** Returns the path of a program; undefined if it is not installed. */
export function pathOf({ name }: NeededProgram): string | undefined {
  return findProgram(name, SYSTEM_FOLDERS);
}

/** Returns the message that names the missing programs and how to install them. */
export function missingMessage(missing: readonly NeededProgram[]): string {
  const packages = [...new Set(missing.map(({ aptPackage }) => aptPackage))];
  return [
    `Missing: ${missing.map(({ name }) => name).join(', ')}.`,
    'They are installed for you by root on Debian or Ubuntu. Install them elsewhere and add them to PATH;',
    `with apt: sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
  ].join('\n');
}

/** Debian runs this program before an installation starts a service; exit code 101 forbids the start. */
const POLICY_FILE = '/usr/sbin/policy-rc.d';

/** Does the work while packages start none of their services. A policy that exists stays as it is. */
export async function withoutStartingServices<T>(
  work: () => Promise<T>,
  policyFile = POLICY_FILE,
): Promise<T> {
  if (existsSync(policyFile)) return work();
  const remove = (): void => {
    rmSync(policyFile, { force: true });
  };
  process.once('exit', remove);
  writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return await work();
  } finally {
    remove();
    process.removeListener('exit', remove);
  }
}
