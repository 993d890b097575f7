import { messageOf } from '../stack-error.ts';
import { NODE_FLAGS, programEnv } from './services.ts';
import { findAddresses } from './stack-file.ts';

/**
 * Becomes another program of Posthorn, on the addresses of the environment or of the running stack. The process stays
 * the same one: signals, exit code and standard output are the program's own, and killing the pid kills the program.
 */
export function replaceBy(
  entry: string,
  args: readonly string[],
  defaults: Record<string, string>,
): void {
  try {
    const given = Object.entries(programEnv(findAddresses(process.env)));
    const env = Object.fromEntries(
      given.filter(([, value]) => value !== undefined && value !== ''),
    );
    process.execve?.(process.execPath, [process.execPath, ...NODE_FLAGS, entry, ...args], {
      ...defaults,
      ...env,
    });
    throw new Error('Windows cannot run this; use WSL.');
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
