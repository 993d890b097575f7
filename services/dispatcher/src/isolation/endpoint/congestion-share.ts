/** The share of attempts that ended with 429, 503 or a timeout, from 0 to 1. */
export interface CongestionShare {
  /** Since the last decrease of the limit. */
  readonly recent: number;
  /** Over a longer time, of the attempts made below the limit that failed. */
  readonly usual: number;
}

/**
 * A decrease needs 3 % (the second refusal in a row, or in about sixty attempts) beyond three times
 * the usual share. With a decrease for each refusal, 1 % of 503 unrelated to load left 17 % of the
 * throughput. A share above 10 % is never usual.
 */
const UNUSUAL = { share: 0.03, timesUsual: 3, usualAtMost: 0.1 };
/** The moving averages reach over about 64 and 128 attempts. */
const WEIGHT = { recent: 1 / 64, usual: 1 / 128 };

export const NO_CONGESTION: CongestionShare = { recent: 0, usual: 0 };

/** `isBelow`: the limit is below the one that failed, so that a refusal is not due to the limit. */
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
