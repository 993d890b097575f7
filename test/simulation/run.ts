import { parseArgs } from 'node:util';
import {
  loadSimulation,
  type Simulation,
  describeFailure,
  describeRun,
} from './load-simulation.ts';

const PROGRESS_MS = 1_000;

/** Runs one seed and prints its trace. Returns whether every invariant held. */
async function runOne({ simulate }: Simulation, { from }: Seeds): Promise<boolean> {
  const result = await simulate(from, { isTraced: true });
  for (const line of result.trace) console.log(line);
  console.log(`\n${describeRun(result)}`);
  return result.violations.length === 0;
}

/** Runs many seeds and stops at the first violation. Returns whether every invariant held. */
async function runMany({ simulate }: Simulation, { from, count }: Seeds): Promise<boolean> {
  const end = from + (count ?? 1);
  const startedMs = Date.now();
  let printedMs = startedMs;
  for (let seed = from; seed < end; seed += 1) {
    const result = await simulate(seed);
    if (result.violations.length > 0) {
      console.error(`\n${describeFailure(result)}`);
      return false;
    }
    if (Date.now() - printedMs < PROGRESS_MS) continue;
    printedMs = Date.now();
    console.log(progress(seed - from + 1, end - from, printedMs - startedMs));
  }
  console.log(`${end - from} seeds from ${from}: every invariant held`);
  return true;
}

function progress(done: number, all: number, tookMs: number): string {
  const perSecond = (done * 1_000) / tookMs;
  const leftSeconds = Math.round((all - done) / perSecond);
  return `${done} of ${all} seeds, ${Math.round(perSecond)}/s, ${leftSeconds} s left`;
}

interface Seeds {
  from: number;
  /** Null to run one seed and print its trace. */
  count: number | null;
}

const USAGE = `npm run simulate -- --seed 42                  one seed, with its trace
npm run simulate -- --seeds 1000000 --from 1   many seeds, until one fails`;

/** Returns null if the command line is invalid. */
function readSeeds(args: string[]): Seeds | null {
  const text = { type: 'string' as const };
  try {
    const { values } = parseArgs({ args, options: { seed: text, seeds: text, from: text } });
    const [seed, count, from] = [values.seed, values.seeds, values.from].map(parseInteger);
    if (Number.isNaN(seed) || Number.isNaN(count) || Number.isNaN(from)) return null;
    if (seed !== undefined && count === undefined) return { from: seed, count: null };
    return count === undefined ? null : { from: from ?? 1, count };
  } catch {
    return null;
  }
}

function parseInteger(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : NaN;
}

const seeds = readSeeds(process.argv.slice(2));
if (seeds === null) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  const simulation = await loadSimulation();
  process.exitCode = (await (seeds.count === null ? runOne : runMany)(simulation, seeds)) ? 0 : 1;
}
