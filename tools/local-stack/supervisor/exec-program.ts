import { messageOf } from '../stack-error.ts';
import { NODE_FLAGS, programEnv } from './services.ts';
import { findAddresses } from './stack-file.ts';

/**
 * Replaces this process by another program of Posthorn, with the addresses of the environment or of the running stack.
 * The pid stays the same: signals, exit code and standard output are those of the program.
 */
export function execOnStack(
  entry: string,
  args: readonly string[],
  defaults: Record<string, string>,
): void {
  try {
    execProgram(entry, args, {
      ...defaults,
      ...withoutEmpty(programEnv(findAddresses(process.env))),
    });
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}

/** Replaces this process by a program with exactly this environment. Throws on systems without exec. */
export function execProgram(entry: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  process.execve?.(process.execPath, [process.execPath, ...NODE_FLAGS, entry, ...args], env);
  throw new Error('Windows cannot run this; use WSL.');
}

function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
}
