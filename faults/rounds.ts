import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AnyRound, LoneRound } from './round.ts';
import { BROKEN } from './rounds/faulty-builds/broken.ts';
import { CLOCKS } from './rounds/clocks.ts';
import { FROZEN_SERVICES, CALM, KILLS, UNPUBLISHED } from './rounds/processes.ts';
import { ENDPOINT_FAULTS } from './rounds/endpoints.ts';
import { FROZEN_CHANGES } from './rounds/frozen-changes/frozen-changes.ts';
import { HUNG_ATTEMPTS } from './rounds/faulty-builds/hung-attempts.ts';
import {
  GATEWAY_KILLED_AFTER,
  KAFKA_AWAY,
  MONGODB_AWAY,
  REDIS_AWAY,
} from './rounds/stores-away.ts';
import { HOLDS } from './rounds/holds.ts';
import { INGEST } from './rounds/ingest.ts';
import { MOVED_PARTITIONS } from './rounds/moved-partitions.ts';
import { ORDER } from './rounds/order/order.ts';
import { RESTARTS } from './rounds/restarts.ts';
import { SOAK } from './rounds/soak.ts';
import { STORE_FAULTS } from './rounds/stores.ts';
import { UPGRADE } from './rounds/upgrade.ts';

const ROOT = join(import.meta.dirname, '..');
const SEEDS_PER_SECOND = 50;

const SIMULATION: LoneRound = {
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

/** All rounds. Those of one layout follow one another, so that they share a stack. */
export const ROUNDS: readonly AnyRound[] = [
  CALM,
  ...KILLS,
  UNPUBLISHED,
  ...RESTARTS,
  ...FROZEN_SERVICES,
  ...KAFKA_AWAY,
  GATEWAY_KILLED_AFTER,
  ...MONGODB_AWAY,
  ...REDIS_AWAY,
  ...ENDPOINT_FAULTS,
  ...CLOCKS,
  SIMULATION,
  ...STORE_FAULTS,
  MOVED_PARTITIONS,
  INGEST,
  ORDER,
  ...HOLDS,
  ...FROZEN_CHANGES,
  ...HUNG_ATTEMPTS,
  UPGRADE,
  ...BROKEN,
  SOAK,
];

/**
 * What runs with every `npm test`, in this order: rounds of one stack follow each other, and the last one spoils it. Each
 * kind of crash and outage once; the others are variants: clocks return from an hour ahead, and both gateways are killed
 * with messages that nobody else would publish.
 */
export const SHORT: readonly string[] = [
  'F13-ahead',
  'F1-unpublished',
  'F2',
  'F3',
  'F4',
  'F5-frozen',
  'deleted-topics',
];

/** Runs a program of this repository; returns a finding when it does not exit with 0. */
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
