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
    become(entry, args, { ...defaults, ...withoutEmpty(programEnv(findAddresses(process.env))) });
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}

/** Becomes the program with exactly this environment. Throws where the system cannot do that. */
export function become(entry: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  process.execve?.(process.execPath, [process.execPath, ...NODE_FLAGS, entry, ...args], env);
  throw new Error('Windows cannot run this; use WSL.');
}

function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
}
