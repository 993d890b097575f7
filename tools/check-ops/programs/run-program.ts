import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { waitForExit, signalGroup } from '../../local-stack/processes/child.ts';

export const ROOT = join(import.meta.dirname, '../../..');
const TIMEOUT_MS = 300_000;

interface ProgramOptions {
  /** Added to those of this process. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** The program and all that it started are killed after this time. */
  timeoutMs?: number;
}

/**
 * Runs a program in the root of the repository and returns its standard output. Throws its whole output when it fails
 * or takes too long. It ends when this process gets a signal to end.
 */
export async function runProgram(
  command: string,
  args: readonly string[],
  { env, cwd = ROOT, timeoutMs = TIMEOUT_MS }: ProgramOptions = {},
): Promise<string> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that its end is also the end of what it has started.
    detached: true,
  });
  const kill = (): void => {
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  };
  const endings = ['exit', 'SIGINT', 'SIGTERM'] as const;
  for (const ending of endings) process.once(ending, kill);
  const timer = setTimeout(kill, timeoutMs);
  const [exit, out, err] = await Promise.all([
    waitForExit(child),
    text(child.stdout),
    text(child.stderr),
  ]);
  clearTimeout(timer);
  for (const ending of endings) process.removeListener(ending, kill);
  if (exit === 'exit code 0') return out;
  throw new Error(`${command} ${args.join(' ')} failed (${exit}):\n${out}${err}`.trimEnd());
}
