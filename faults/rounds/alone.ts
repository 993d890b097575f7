import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { LoneRound } from '../round.ts';

const ROOT = join(import.meta.dirname, '../..');
const SEEDS_PER_SECOND = 50;

/** Runs a program of this repository; returns what is wrong when it does not exit with 0. */
async function runCommand(args: readonly string[], signal: AbortSignal): Promise<string[]> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    cwd: ROOT,
    stdio: 'inherit',
    signal,
    killSignal: 'SIGTERM',
  });
  child.on('error', () => undefined);
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0 ? [] : [`${args[0] ?? ''} ended with ${code ?? 'a signal'}`];
}

export const SIMULATION: LoneRound = {
  name: 'F14',
  summary: `the simulation of the delivery logic, ${SEEDS_PER_SECOND} seeds for each second of --seconds`,
  promise: 'every invariant holds with every seed',
  seconds: [20],
  runAlone: ({ seconds, signal }) =>
    runCommand(
      ['test/simulation/run.ts', '--seeds', String(Math.ceil(seconds * SEEDS_PER_SECOND))],
      signal,
    ),
};
