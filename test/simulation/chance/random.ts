import { createRandom as createDraws } from '../../support/samples/seeded-random.ts';

/** Everything in a simulation that is left to chance comes from one of these. */
export interface Random {
  /** A whole number from 0 up to, and without, `limit`. */
  below: (limit: number) => number;
  /** A whole number, both ends included. */
  between: (low: number, high: number) => number;
  isHit: (probability: number) => boolean;
  pick: <T>(choices: readonly [T, ...T[]]) => T;
  shuffled: <T>(list: readonly T[]) => T[];
}

/** Seeds are numbered one by one; this spreads them, so that neighbours share nothing. */
const SPREAD = 0x9e3779b1;

export function createRandom(seed: number): Random {
  const next = createDraws(Math.imul(seed, SPREAD));
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    between: (low, high) => low + below(high - low + 1),
    isHit: (probability) => next() < probability,
    pick: (choices) => choices[below(choices.length)] ?? choices[0],
    shuffled: (list) =>
      list
        .map((item) => ({ item, rank: next() }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ item }) => item),
  };
}
