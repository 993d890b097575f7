import { isSuccess } from './deliveries.ts';
import type { Arrival } from './evidence.ts';

/** A request and the one that repeats it. */
export interface Pair {
  first: Arrival;
  second: Arrival;
}

/** Returns the requests that came after one that the receiver had answered with 2xx, each with the last such one. */
export function afterSuccess(arrivals: readonly Arrival[]): Pair[] {
  return arrivals.flatMap((second, index) => {
    const first = arrivals
      .slice(0, index)
      .findLast((each) => isSuccess(each) && each.answeredAtMs <= second.atMs);
    return first ? [{ first, second }] : [];
  });
}
