import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRIES } from '../../../deploy/posthorn.ts';
import { eventually } from '../time/eventually.ts';

/** What every Posthorn has. */
export const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;
export type UsualService = (typeof SERVICES)[number];
/** `ingest` runs where topics are configured. */
export type ServiceName = UsualService | 'ingest';

const ROOT = join(import.meta.dirname, '../../..');
/** Of what a service prints. */
export const KEPT_CHARS = 200_000;
const READY_WITHIN_MS = 90_000;
/** With the compiled sources in it, a start takes two thirds of the processor time. */
export const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/compile');
/**
 * A dozen services share two cores: helper threads of their collectors would only take turns (a start: 15 % less). But
 * without them the marking of a full collection takes seconds on a busy machine, and by default V8 collects no young
 * garbage until it ends: the young generation grew from 32 to 75 MiB, where the stories that watch the memory of a service
 * expect less than 40 (without this rule: 4 MiB).
 */
const NODE_FLAGS = [
  '--disable-warning=ExperimentalWarning',
  '--single-threaded-gc',
  '--no-separate-gc-phases',
];

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A service that was started, in this process or as its own. */
export interface Running {
  /** Returns what it has printed, at most the newest 200,000 characters. */
  output: () => string;
  isRunning: () => boolean;
  /** Resolves when it has ended. */
  ended: Promise<Ended>;
  /** Stops it as SIGTERM does, and waits for its end. */
  stop: () => Promise<Ended>;
}

/** A program of the repository as its own process, as in production. */
export interface ProgramProcess extends Running {
  pid: number;
  signal: (signal: NodeJS.Signals) => void;
}

export function startProgram(
  path: string,
  args: string[],
  env: Record<string, string>,
): ProgramProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, join(ROOT, path), ...args], {
    env: { ...process.env, NODE_OPTIONS: '', NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-KEPT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = endOf(child);
  return {
    pid: child.pid ?? 0,
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

const FILLED_WITHIN_MS = 60_000;

/**
 * Fills the compile cache unless it exists: a service that is killed leaves nothing in it. With a wrong
 * setting, a service ends as soon as it has loaded its sources.
 */
export async function fillCompileCache(services: readonly ServiceName[]): Promise<void> {
  if (existsSync(COMPILE_CACHE)) return;
  const starting = services.map(async (name) => {
    const program = startProgram(ENTRIES[name], [], { OPS_PORT: 'none' });
    // Node has hung in its own exit once, after all output.
    const timer = setTimeout(() => {
      program.signal('SIGKILL');
    }, FILLED_WITHIN_MS);
    await program.ended;
    clearTimeout(timer);
  });
  await Promise.all(starting);
}

/** Runs a program to its end; throws with what it printed unless it exits 0. */
export async function runProgram(
  path: string,
  args: string[],
  env: Record<string, string>,
): Promise<string> {
  const program = startProgram(path, args, env);
  const { code } = await program.ended;
  if (code !== 0) throw new Error(`${path} ended with ${String(code)}: ${program.output()}`);
  return program.output();
}

/** Resolves when `/readyz` returns 200; throws with the output of the service when it ends or takes too long. */
export async function untilReady(service: Running, opsPort: number): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    if (!service.isRunning()) throw new Error('it ended');
    return (await statusOf(`http://127.0.0.1:${opsPort}/readyz`)) === 200;
  };
  await eventually('ready', isReady, READY_WITHIN_MS).catch((error: unknown) => {
    throw new Error(`A service did not become ready: ${service.output()}`, { cause: error });
  });
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
