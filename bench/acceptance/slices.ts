import { setTimeout as wait } from 'node:timers/promises';

/** Does the same work once, such as accepting some messages. */
export type Slice = () => Promise<void>;

interface Pair {
  one: Slice;
  other: Slice;
}

interface SliceSpec {
  /** How often both run in all. */
  pairs: number;
  /** Returns the processor time of this process so far, in µs. */
  cpuUs?: () => Promise<number>;
}

/** The processor time of slices, in µs. */
export interface Compared {
  /** The median of the slices of each. */
  one: number;
  other: number;
  /** What the other takes more than the one before or after it: the median of the pairs. */
  more: number;
  /** The lowest and highest of such medians, of five rounds: how far the next run may be away. */
  between: readonly [lowest: number, highest: number];
}

const ROUNDS = 5;
/** Before they count, each of both runs so often: code is compiled and caches are filled. */
const WARM_UPS = 10;

/**
 * Runs both in short slices, in turn: what the machine does meanwhile, for longer than a slice, hits both. Every second pair
 * begins with the other, so that a machine that becomes slower makes neither look cheaper.
 */
export async function compareSlices(
  { one, other }: Pair,
  { pairs, cpuUs = processUs }: SliceSpec,
): Promise<Compared> {
  const costOf = async (slice: Slice): Promise<number> => {
    const begunUs = await cpuUs();
    await slice();
    return (await cpuUs()) - begunUs;
  };
  for (let n = 0; n < WARM_UPS; n += 1) {
    await one();
    await other();
  }
  const costs: { one: number; other: number }[] = [];
  for (let n = 0; n < pairs; n += 1) {
    const first = await costOf(n % 2 === 0 ? one : other);
    const second = await costOf(n % 2 === 0 ? other : one);
    costs.push(n % 2 === 0 ? { one: first, other: second } : { one: second, other: first });
  }
  const more = costs.map((pair) => pair.other - pair.one);
  const size = Math.ceil(pairs / ROUNDS);
  const rounds = Array.from({ length: ROUNDS }, (_, n) => more.slice(n * size, (n + 1) * size));
  const medians = rounds.filter(({ length }) => length > 0).map(medianOf);
  return {
    one: medianOf(costs.map((pair) => pair.one)),
    other: medianOf(costs.map((pair) => pair.other)),
    more: medianOf(more),
    between: [Math.min(...medians), Math.max(...medians)],
  };
}

/** With the threads that collect garbage. Linux counts the time of a thread when it sleeps, else every 4 ms. */
async function processUs(): Promise<number> {
  await wait(1);
  const { user, system } = process.cpuUsage();
  return user + system;
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}
