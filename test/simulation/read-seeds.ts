import { parseArgs } from 'node:util';

export interface Seeds {
  from: number;
  /** Null to run one seed and print its trace. */
  count: number | null;
}

export const USAGE = `npm run simulate -- --seed 42                  one seed, with its trace
npm run simulate -- --seeds 1000000 --from 1   many seeds, until one fails`;

/** Returns null if the command line is invalid. */
export function readSeeds(args: string[]): Seeds | null {
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
