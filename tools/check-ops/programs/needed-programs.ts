import { findProgram } from '../../local-stack/machine/find-program.ts';

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

/** Says which programs are missing and how a person installs them. */
export function missingMessage(missing: readonly NeededProgram[]): string {
  const packages = [...new Set(missing.map(({ aptPackage }) => aptPackage))];
  return [
    `Missing: ${missing.map(({ name }) => name).join(', ')}.`,
    'They are installed for you by root on Debian or Ubuntu. Install them elsewhere and add them to PATH;',
    `with apt: sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
  ].join('\n');
}
