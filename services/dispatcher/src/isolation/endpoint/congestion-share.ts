/** Shares of attempts that ended with 429, 503 or a timeout, 0 to 1. */
export interface CongestionShare {
  /** Since the last retreat. */
  readonly recent: number;
  /** Over a longer time, of what was made below the limit that failed. */
  readonly usual: number;
}

/**
 * A retreat needs 3 % (the second in a row, or in about sixty) beyond three times what is usual. With
 * one for each refusal, 1 % of 503 that has nothing to do with the load left 17 % of the throughput.
 * More than 10 % is never usual.
 */
const UNUSUAL = { share: 0.03, timesUsual: 3, usualAtMost: 0.1 };
/** Moving averages over about so many attempts. */
const WEIGHT = { recent: 1 / 64, usual: 1 / 128 };

export const NO_CONGESTION: CongestionShare = { recent: 0, usual: 0 };

/** `isBelow`: what is refused below the limit that failed is not refused because of the limit. */
export function withAttempt(
  { recent, usual }: CongestionShare,
  isCongested: boolean,
  isBelow: boolean,
): CongestionShare {
  const target = isCongested ? 1 : 0;
  return {
    recent: recent + (target - recent) * WEIGHT.recent,
    usual: isBelow ? usual + (target - usual) * WEIGHT.usual : usual,
  };
}

export function isUnusual({ recent, usual }: CongestionShare): boolean {
  return recent > UNUSUAL.share + UNUSUAL.timesUsual * Math.min(usual, UNUSUAL.usualAtMost);
}
