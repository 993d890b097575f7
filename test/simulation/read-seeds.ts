import { parseArgs } from 'node:util';

export interface Seeds {
  from: number;
  /** Null for one seed, with its trace. */
  count: number | null;
}

export const USAGE = `npm run simulate -- --seed 42                  one seed, with everything that happens
npm run simulate -- --seeds 1000000 --from 1   many, until one fails`;

/** Null when the command line is not understood. */
export function readSeeds(args: string[]): Seeds | null {
  const text = { type: 'string' as const };
  try {
    const { values } = parseArgs({ args, options: { seed: text, seeds: text, from: text } });
    const [seed, count, from] = [values.seed, values.seeds, values.from].map(wholeNumber);
    if (Number.isNaN(seed) || Number.isNaN(count) || Number.isNaN(from)) return null;
    if (seed !== undefined && count === undefined) return { from: seed, count: null };
    return count === undefined ? null : { from: from ?? 1, count };
  } catch {
    return null;
  }
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : NaN;
}
