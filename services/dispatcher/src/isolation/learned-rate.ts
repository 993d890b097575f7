/** The rate that an endpoint accepts, as far as it was learned. Times are monotonic milliseconds. */
export interface LearnedRate {
  /** When the second that is being counted began, its successes, and those of the previous second. */
  readonly sinceMs: number;
  readonly successes: number;
  readonly successesBefore: number;
  /** The last success; -Infinity before the first. */
  readonly lastMs: number;
  /** The share of the last 256 attempts or so that were refused, from 0 to 1: a moving average. */
  readonly refusedShare: number;
  readonly bound: RateBound | null;
}

/** Rates are attempts per second. */
interface RateBound {
  /** The last decrease. */
  readonly refusedMs: number;
  /** Right after it. */
  readonly base: number;
  /** The rate stays near it for a while; null while the bound is still searched for. */
  readonly plateau: number | null;
  /** Time since the first success after the decrease, without pauses. */
  readonly grownMs: number;
  readonly hasSucceeded: boolean;
  /** How often in a row about the same rate was refused: so often the limit was found again. */
  readonly confirmed: number;
}

interface Ended {
  startedMs: number;
  endedMs: number;
}

/** Nothing is known, no bound. */
export const NO_RATE: LearnedRate = {
  sinceMs: -Infinity,
  successes: 0,
  successesBefore: 0,
  lastMs: -Infinity,
  refusedShare: 0,
  bound: null,
};

/**
 * Fewer refusals than this share say nothing about the rate, as those of one of many replicas, or of one of
 * many users. With a decrease for each, an endpoint that refused one request in a hundred at random had 2 % of its
 * throughput.
 */
const UNUSUAL_SHARE = 0.03;
const SHARE_WEIGHT = 1 / 256;

/** Most receivers limit a second. Over less time, a burst would count as the rate. */
const SECOND_MS = 1_000;
/** One attempt in five seconds finds out when the refusals are over. */
const LEAST_RATE = 0.2;
/** Where the search begins when no attempt has succeeded. */
const FIRST_RATE = 10;
/**
 * The share kept at a decrease. RFC 9438 keeps 0.7, but a rate overshoots by less than a window: only
 * refusals that follow soon need a larger step.
 */
const KEPT = { first: 0.95, soon: 0.85, afterNone: 0.5 };
const SOON_MS = 5_000;
/** The plateau is a little below the refused rate, so that a fixed limit is hit seldom. */
const PLATEAU_SHARE = 0.98;
/**
 * From the decrease to the plateau: K of RFC 9438. The refused rate is reached after 1.9 K, ten times
 * that rate after 7.6 K.
 */
const PLATEAU_AFTER_MS = 12_000;
/**
 * The rate returns to a limit that was found again in twice the time, because each search beyond it
 * costs a pause.
 */
const CONFIRMED = { within: 0.1, atMost: 1 };
/** While the bound is searched for, the rate doubles in this time. */
const DOUBLING_MS = 1_000;
/** A bound of this many times what succeeds limits nothing, and is forgotten. */
const FORGOTTEN_AT = 10;

export function rateAfterSuccess(rate: LearnedRate, ended: Ended): LearnedRate {
  if (!isMeasured(ended)) return rate;
  const counted = withSuccess(rate, ended.endedMs);
  const { bound } = rate;
  if (bound === null || ended.startedMs <= bound.refusedMs) return counted;
  const grownMs = bound.grownMs + growthMs(rate, ended.endedMs);
  const known = Math.max(successesPerSecond(counted, ended.endedMs), bound.plateau ?? bound.base);
  const isFar = rateOf(bound, grownMs) > FORGOTTEN_AT * known;
  return {
    ...counted,
    bound: isFar ? null : { ...bound, grownMs, hasSucceeded: true },
  };
}

/**
 * After a 429, or a 503 with Retry-After. One that asks for a pause (`asksForPause`) always lowers the rate: each costs
 * a pause, however few there are.
 */
export function rateAfterRefusal(
  before: LearnedRate,
  ended: Ended,
  asksForPause: boolean,
): LearnedRate {
  if (!isMeasured(ended)) return before;
  const rate = { ...before, refusedShare: shareAfter(before, 1) };
  if (!asksForPause && rate.refusedShare <= UNUSUAL_SHARE) return rate;
  const { bound } = rate;
  // Until a limit per second allows more, every refusal says the same.
  if (bound !== null && ended.startedMs < bound.refusedMs + SECOND_MS) return rate;
  return {
    ...rate,
    bound: bound === null ? firstBound(rate, ended) : lowered(rate, bound, ended),
  };
}

/** Returns the attempts per second that the endpoint accepts; null when no bound is known. */
export function ratePerSecond(rate: LearnedRate, nowMs: number): number | null {
  const { bound } = rate;
  return bound === null ? null : rateOf(bound, bound.grownMs + growthMs(rate, nowMs));
}

/** The part of a learned rate that the next owner of the endpoint begins with; see RateBound. */
export type HandedOverRate = Pick<RateBound, 'base' | 'plateau' | 'grownMs' | 'confirmed'>;

/** Null when no bound is known. */
export function handOverRate(rate: LearnedRate, nowMs: number): HandedOverRate | null {
  if (rate.bound === null) return null;
  const { base, plateau, grownMs, confirmed } = rate.bound;
  return { base, plateau, grownMs: grownMs + growthMs(rate, nowMs), confirmed };
}

/**
 * The rate continues where it was. As after a decrease it grows with the next success only, and refusals of one second
 * say nothing: they may be due to the attempts of the former owner.
 */
export function inheritedRate(handedOver: HandedOverRate | null, nowMs: number): LearnedRate {
  if (handedOver === null) return NO_RATE;
  const { base, plateau, grownMs, confirmed } = handedOver;
  const bound = {
    refusedMs: nowMs,
    base: Math.max(LEAST_RATE, base),
    plateau,
    grownMs,
    hasSucceeded: false,
    confirmed: Math.min(confirmed, CONFIRMED.atMost),
  };
  return { ...NO_RATE, bound };
}

/**
 * Returns the attempts per second at which a backlog will be taken; null when no bound is known. While
 * everything is refused the rate is that of probes. Turns that were booked by it in an outage of two minutes at
 * 100/s lay up to 17 hours ahead.
 */
export function expectedRate(rate: LearnedRate, nowMs: number): number | null {
  const now = ratePerSecond(rate, nowMs);
  return now === null ? null : Math.max(now, rate.bound?.plateau ?? FIRST_RATE);
}

/** Returns how many attempts succeeded in the last second or two. */
export function recentSuccesses(
  { successes, successesBefore, lastMs }: LearnedRate,
  nowMs: number,
): number {
  return nowMs - lastMs > SECOND_MS ? 0 : successes + successesBefore;
}

function isMeasured({ startedMs, endedMs }: Ended): boolean {
  return Number.isFinite(endedMs - startedMs) && endedMs >= startedMs;
}

function shareAfter({ refusedShare }: LearnedRate, refused: 0 | 1): number {
  return refusedShare + (refused - refusedShare) * SHARE_WEIGHT;
}

/** The rate does not grow while nothing is sent (a pause) or nothing succeeds: it would be a guess. */
function growthMs({ bound, lastMs }: LearnedRate, nowMs: number): number {
  return bound?.hasSucceeded === true ? Math.max(0, Math.min(nowMs - lastMs, SECOND_MS)) || 0 : 0;
}

/** A second without a success (a pause) starts a new count: earlier successes belong to another second. */
function withSuccess(rate: LearnedRate, nowMs: number): LearnedRate {
  const { sinceMs, successes, lastMs, bound } = rate;
  const refusedShare = shareAfter(rate, 0);
  const isPaused = nowMs - lastMs > SECOND_MS;
  const isOver = nowMs - sinceMs >= SECOND_MS;
  if (!isPaused && !isOver) {
    return { ...rate, successes: successes + 1, lastMs: nowMs, refusedShare };
  }
  return {
    sinceMs: isPaused ? nowMs : sinceMs + SECOND_MS,
    successes: 1,
    successesBefore: isPaused ? 0 : successes,
    lastMs: nowMs,
    refusedShare,
    bound,
  };
}

/** Returns the successes of the last second, estimated from the two counts. */
function successesPerSecond(rate: LearnedRate, nowMs: number): number {
  const { sinceMs, successes, successesBefore } = rate;
  const share = Math.max(0, 1 - (nowMs - sinceMs) / SECOND_MS);
  return successes + successesBefore * Math.min(1, share || 0);
}

/** Less than a second of attempts is too little to know a plateau. */
function firstBound(rate: LearnedRate, { endedMs }: Ended): RateBound {
  const succeeded = successesPerSecond(rate, endedMs);
  return {
    refusedMs: endedMs,
    base: Math.max(LEAST_RATE, KEPT.first * (succeeded || FIRST_RATE)),
    plateau: rate.successesBefore > 0 ? PLATEAU_SHARE * succeeded : null,
    grownMs: 0,
    hasSucceeded: false,
    confirmed: 0,
  };
}

/** Without a success since the last decrease the plateau stays: an outage says nothing about the rate. */
function lowered(rate: LearnedRate, bound: RateBound, { endedMs }: Ended): RateBound {
  const { hasSucceeded, confirmed } = bound;
  const succeeded = succeededBefore(rate, bound, endedMs);
  const kept = bound.grownMs < SOON_MS && confirmed === 0 ? KEPT.soon : KEPT.first;
  const base = hasSucceeded ? kept * succeeded : KEPT.afterNone * rateOf(bound, bound.grownMs);
  const plateau = hasSucceeded ? PLATEAU_SHARE * succeeded : bound.plateau;
  return {
    refusedMs: endedMs,
    base: Math.max(LEAST_RATE, base),
    plateau,
    grownMs: 0,
    hasSucceeded: false,
    confirmed: hasSucceeded ? confirmedBy(bound, plateau) : 0,
  };
}

/**
 * Returns the rate that succeeded when more was refused. A stall of this process makes one second have
 * too few attempts and the next too many, so a confirmed limit falls by 2 % at most, however few
 * attempts that second had.
 */
function succeededBefore(rate: LearnedRate, bound: RateBound, nowMs: number): number {
  const refused = rateOf(bound, bound.grownMs);
  if (rate.successesBefore === 0) return refused;
  const counted = Math.min(refused, successesPerSecond(rate, nowMs));
  return bound.confirmed > 0 ? Math.max(counted, bound.plateau ?? 0) : counted;
}

/**
 * Returns the new `confirmed`. A refusal after enough time may find the limit again; an early one
 * contradicts it.
 */
function confirmedBy({ plateau, grownMs, confirmed }: RateBound, found: number | null): number {
  if (grownMs < SOON_MS) return Math.max(0, confirmed - 1);
  const isFoundAgain =
    plateau !== null && found !== null && Math.abs(found - plateau) <= CONFIRMED.within * plateau;
  return isFoundAgain ? Math.min(confirmed + 1, CONFIRMED.atMost) : 0;
}

/** The cubic function of RFC 9438: fast at first, flat at the plateau, then faster and faster. */
function rateOf({ base, plateau, confirmed }: RateBound, grownMs: number): number {
  if (plateau === null) return Math.min(base * 2 ** (grownMs / DOUBLING_MS), 1e9);
  const toPlateauMs = PLATEAU_AFTER_MS * 2 ** confirmed;
  const beyondMs = grownMs - toPlateauMs;
  const x = beyondMs / (beyondMs < 0 ? toPlateauMs : PLATEAU_AFTER_MS);
  return Math.max(base, plateau + (plateau - base) * x ** 3);
}
