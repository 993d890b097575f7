import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from '../time/eventually.ts';

const ROOT = join(import.meta.dirname, '../../..');
const KEPT_CHARS = 200_000;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A program of the repository as its own process, as in production. */
export interface ServiceProcess {
  /** Everything it printed, the newest part. */
  output: () => string;
  isRunning: () => boolean;
  signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it has ended. */
  ended: Promise<Ended>;
  /** SIGTERM, then its end. */
  stop: () => Promise<Ended>;
}

export function startProgram(
  path: string,
  args: string[],
  env: Record<string, string>,
): ServiceProcess {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(ROOT, path), ...args],
    { env: { ...process.env, NODE_OPTIONS: '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-KEPT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = endOf(child);
  return {
    output: () => output,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    signal: (signal) => child.kill(signal),
    ended,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Runs a program to its end; throws with what it printed unless it exits 0. */
export async function runProgram(
  path: string,
  args: string[],
  env: Record<string, string>,
): Promise<string> {
  const program = startProgram(path, args, env);
  const { code } = await program.ended;
  if (code !== 0) throw new Error(`${path} ended with ${code}: ${program.output()}`);
  return program.output();
}

/** Resolves when `/readyz` answers 200; throws with its output when it ends instead. */
export async function untilReady(service: ServiceProcess, opsPort: number): Promise<void> {
  await eventually(
    'ready',
    async () => {
      if (!service.isRunning()) throw new Error(`ended before it was ready: ${service.output()}`);
      return (await statusOf(`http://127.0.0.1:${opsPort}/readyz`)) === 200;
    },
    60_000,
  );
}

export async function statusOf(url: string): Promise<number | null> {
  try {
    return (await fetch(url)).status;
  } catch {
    return null;
  }
}

async function endOf(child: ChildProcess): Promise<Ended> {
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal };
}
