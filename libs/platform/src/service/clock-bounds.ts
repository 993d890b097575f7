/** How far another clock is ahead of the monotonic clock of this process: something between these. */
export interface AheadMs {
  leastMs: number;
  mostMs: number;
}

/** A time of the other clock, of some moment between two moments of the monotonic clock. In milliseconds. */
export interface SeenTime {
  askedAtMs: number;
  repliedAtMs: number;
  /** Whole milliseconds since 1970. */
  theirMs: number;
}

/**
 * Returns what is known after one more reply, and whether it agrees with what was known. A reply is made between question and
 * answer; what was known before bounds it further, unless a clock was set since.
 */
export function boundAhead(
  known: AheadMs | null,
  { askedAtMs, repliedAtMs, theirMs }: SeenTime,
): { ahead: AheadMs; isAsBefore: boolean } {
  const seen = { leastMs: theirMs - repliedAtMs, mostMs: theirMs + 1 - askedAtMs };
  const both = {
    leastMs: Math.max(seen.leastMs, known?.leastMs ?? -Infinity),
    mostMs: Math.min(seen.mostMs, known?.mostMs ?? Infinity),
  };
  const isAsBefore = both.leastMs <= both.mostMs;
  return { ahead: isAsBefore ? both : seen, isAsBefore };
}
