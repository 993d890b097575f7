import {
  type AuditedDelivery,
  isSuccess,
  type Arrival,
  type Evidence,
  type Excuse,
  type RecordedAttempt,
} from './evidence.ts';

export const UNEXPLAINED = 'unexplained';

/** A request beyond the recorded attempts of its delivery, or after one that was answered with 2xx. */
export interface Duplicate {
  key: string;
  /** One of the reasons that the fault allows, or `UNEXPLAINED`. */
  reason: string;
  /** The request that it repeats. */
  firstAtMs: number;
  secondAtMs: number;
  /** All requests of the delivery and its recorded attempts, in milliseconds after the acceptance. */
  history: string;
}

/**
 * A request does not say which attempt it is. So duplicates are the requests received less the attempts recorded, and
 * those after a 2xx: a dispatcher may repeat a request and record that as one more attempt.
 */
export function duplicatesOf(delivery: AuditedDelivery, evidence: Evidence): Duplicate[] {
  const { key, sent, endpoint, arrivals } = delivery;
  const { shown, recorded, refusalsOf, delaysMs, excuses } = evidence;
  const planned = Math.min(refusalsOf(sent.n, endpoint), delaysMs.length) + 1;
  const attempts = shown.get(key)?.attemptCount ?? planned;
  const attemptsOf = recorded.get(key) ?? [];
  const extra = Math.max(0, arrivals.length - attempts);
  const beyond = extra === 0 ? [] : repeatsAmong(arrivals, attemptsOf, delaysMs).slice(0, extra);
  return [...beyond, ...withoutCounted(afterSuccess(arrivals), beyond)].map(
    ({ first, second }) => ({
      key,
      reason: excuseFor(first, excuses)?.reason ?? UNEXPLAINED,
      firstAtMs: first.atMs,
      secondAtMs: second.atMs,
      history: historyOf(delivery, attemptsOf),
    }),
  );
}

/**
 * A request that nobody recorded is counted already. If it was the one after a 2xx, or the one with the 2xx, nobody knew
 * of it or of its response, and the recorded one was due.
 */
function withoutCounted(pairs: readonly Pair[], counted: readonly Repeat[]): Pair[] {
  const left = [...pairs];
  for (const { unrecorded } of counted) {
    const index = left.findIndex(
      ({ first, second }) => first === unrecorded || second === unrecorded,
    );
    if (index !== -1) left.splice(index, 1);
  }
  return left;
}

/** One of the two was made by no recorded attempt. */
interface Repeat extends Pair {
  unrecorded: Arrival;
}

/**
 * Returns pairs of a request and the one that repeats it. Without recorded attempts these are all neighbours, first
 * those that cannot be an attempt and its retry.
 */
function repeatsAmong(
  arrivals: readonly Arrival[],
  recorded: readonly RecordedAttempt[],
  delaysMs: readonly number[],
): Repeat[] {
  const shortestMs = Math.min(...delaysMs);
  const isTooSoon = ({ first, second }: Pair): boolean =>
    isSuccess(first) || second.atMs - first.answeredAtMs < shortestMs;
  const pairs = arrivals.slice(1).flatMap((second, index): Repeat[] => {
    const first = arrivals[index];
    return first ? [{ first, second, unrecorded: second }] : [];
  });
  const unrecorded = unrecordedAmong(arrivals, recorded);
  if (!unrecorded) {
    return [...pairs.filter(isTooSoon), ...pairs.filter((pair) => !isTooSoon(pair))];
  }
  return unrecorded.flatMap((request): Repeat[] => {
    const asSecond = pairs.find(({ second }) => second === request);
    const asFirst = pairs.find(({ first }) => first === request);
    // A retry that was due and was not recorded is repeated by the next request; any other repeats the one before.
    const pair = asSecond && (isTooSoon(asSecond) || !asFirst) ? asSecond : asFirst;
    return pair ? [{ ...pair, unrecorded: request }] : [];
  });
}

function excuseFor(first: Arrival, excuses: readonly Excuse[]): Excuse | undefined {
  const { n, atMs, answeredAtMs } = first;
  return excuses.find(
    ({ fromMs, toMs, isOf }) =>
      atMs <= toMs && answeredAtMs >= fromMs && (!isOf || (n !== null && isOf(n))),
  );
}

function historyOf(
  { acceptedAtMs, arrivals }: AuditedDelivery,
  recorded: readonly RecordedAttempt[],
): string {
  const after = (timesMs: readonly number[]): string =>
    timesMs.map((atMs) => Math.round(atMs - acceptedAtMs)).join(', ');
  const requests = after(arrivals.map(({ atMs }) => atMs));
  return `requests at ${requests} ms, recorded attempts at ${after(recorded.map(({ startedAtMs }) => startedAtMs))} ms`;
}

export function countByReason(duplicates: readonly Duplicate[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason } of duplicates) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

/** Two processes of one machine read the clock in whole milliseconds. */
const ROUNDING_MS = 2;

/**
 * Returns the requests that no recorded attempt has made: an attempt begins before its request arrives, and ends
 * after the response. Returns null when an attempt has no request: the clocks differ then, and the two cannot be matched.
 */
function unrecordedAmong(
  arrivals: readonly Arrival[],
  recorded: readonly RecordedAttempt[],
): Arrival[] | null {
  if (recorded.length === 0) return null;
  const left = [...arrivals];
  for (const attempt of recorded) {
    const index = left.findIndex((arrival) => isRequestOf(arrival, attempt));
    if (index === -1) return null;
    left.splice(index, 1);
  }
  return left;
}

function isRequestOf(
  { atMs }: Pick<Arrival, 'atMs'>,
  { startedAtMs, endedAtMs }: RecordedAttempt,
): boolean {
  return atMs >= startedAtMs - ROUNDING_MS && atMs <= endedAtMs + ROUNDING_MS;
}

/** A request and the one that repeats it. */
interface Pair {
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

/**
 * Whether a retry came before its delay had passed. The delay counts from the end of the failed attempt, which is not
 * before the response of the endpoint. With more requests than recorded attempts only the recorded times count.
 */
export function hasEarlyRetry(delivery: AuditedDelivery, evidence: Evidence): boolean {
  const { delaysMs } = evidence;
  return waitsOf(delivery, evidence).some(
    (waitMs, index) => waitMs < (delaysMs[index] ?? 0) - ROUNDING_MS,
  );
}

/** How much longer than its delay a retry waited, at most, in milliseconds; 0 without retries. */
export function latestRetryMs(deliveries: readonly AuditedDelivery[], evidence: Evidence): number {
  const { delaysMs } = evidence;
  const late = deliveries.flatMap((each) =>
    waitsOf(each, evidence).map((waitMs, index) => waitMs - (delaysMs[index] ?? waitMs)),
  );
  return late.reduce((latest, each) => Math.max(latest, each), 0);
}

function waitsOf(delivery: AuditedDelivery, { shown, recorded }: Evidence): readonly number[] {
  const { key, arrivals } = delivery;
  const isExact = (shown.get(key)?.attemptCount ?? arrivals.length) === arrivals.length;
  return waitsBetween(isExact ? arrivals.map(asAttempt) : (recorded.get(key) ?? []));
}

function asAttempt({ atMs, answeredAtMs }: Arrival): RecordedAttempt {
  return { startedAtMs: atMs, endedAtMs: answeredAtMs };
}

/** From the end of each to the beginning of the next. */
function waitsBetween(attempts: readonly RecordedAttempt[]): number[] {
  return attempts
    .slice(1)
    .map(({ startedAtMs }, index) => startedAtMs - (attempts[index]?.endedAtMs ?? 0));
}
