import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { processorSeconds } from './processor-time.ts';

export const ROOT = join(import.meta.dirname, '../..');
/** A test that never ends must be a failure, not a run without end. */
const TIMEOUT_MS = 1_800_000;
/** Enough that the tests beside it, which measure waits, get the processor first. */
const BACKGROUND_NICENESS = 10;

export interface ProgramOptions {
  /** The script and its arguments. */
  command: readonly string[];
  env?: Record<string, string>;
  /** Whether it leaves the processor to the programs that run beside it. */
  isInBackground?: boolean;
  /** Called with whole lines. */
  onOutput: (text: string) => void;
  onStart?: (child: ChildProcess) => void;
}

export interface ProgramEnd {
  /** Null when it was killed. */
  code: number | null;
  /** Of the program and its children. */
  processorSeconds: number;
}

/** Of all children that have ended. */
let countedSeconds = 0;

/** Runs a Node program of the repository to its end. */
export async function runNode(options: ProgramOptions): Promise<ProgramEnd> {
  const child = spawn(
    process.execPath,
    // Native ESM in jest is experimental.
    ['--disable-warning=ExperimentalWarning', ...options.command],
    {
      cwd: ROOT,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that its end is also the end of what it has started.
      detached: true,
    },
  );
  if (options.isInBackground && child.pid) lowerPriority(child.pid);
  const end = (): void => {
    killGroup(child);
  };
  process.once('exit', end);
  const timer = setTimeout(end, TIMEOUT_MS);
  forwardLines(child.stdout, options.onOutput);
  forwardLines(child.stderr, options.onOutput);
  options.onStart?.(child);
  let ownSeconds = 0;
  child.once('exit', () => {
    // The system adds the time of a child to that of its parent when the child has ended.
    const { children } = processorSeconds();
    ownSeconds = children - countedSeconds;
    countedSeconds = children;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  process.removeListener('exit', end);
  end();
  return { code, processorSeconds: ownSeconds };
}

function lowerPriority(pid: number): void {
  setPriority(pid, BACKGROUND_NICENESS);
  try {
    // Linux shares the processor out among sessions first, and then only their own niceness counts.
    writeFileSync(`/proc/${pid}/autogroup`, String(BACKGROUND_NICENESS));
  } catch {
    // Other systems and kernels have no such groups.
  }
}

/** Kills a program and every process that it started and that still runs. */
export function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // No process of the group is left.
  }
}

/** Programs that run side by side must not break into each other's lines. */
function forwardLines(stream: NodeJS.ReadableStream, onOutput: (text: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const text = rest + chunk;
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    if (end > 0) onOutput(text.slice(0, end));
  });
  stream.on('end', () => {
    if (rest !== '') onOutput(`${rest}\n`);
  });
}
