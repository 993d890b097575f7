import { createRandom as createSeededRandom } from '../../support/samples/seeded-random.ts';

/** The only source of randomness in a simulation. */
export interface Random {
  /** Returns an integer from 0 to below `limit`. */
  below: (limit: number) => number;
  /** Returns an integer from `low` to `high`, both inclusive. */
  between: (low: number, high: number) => number;
  /** Returns true with this probability. */
  bool: (probability: number) => boolean;
  pick: <T>(choices: readonly [T, ...T[]]) => T;
  shuffled: <T>(list: readonly T[]) => T[];
}

/** Seeds are consecutive numbers. This factor spreads them, so that neighbouring runs are independent. */
const SEED_FACTOR = 0x9e3779b1;

export function createRandom(seed: number): Random {
  const next = createSeededRandom(Math.imul(seed, SEED_FACTOR));
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    between: (low, high) => low + below(high - low + 1),
    bool: (probability) => next() < probability,
    pick: (choices) => choices[below(choices.length)] ?? choices[0],
    shuffled: (list) =>
      list
        .map((item) => ({ item, rank: next() }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ item }) => item),
  };
}
