import { type AuditedDelivery, isSuccess } from './deliveries.ts';
import type { Arrival, Evidence, Excuse } from './evidence.ts';

export const UNEXPLAINED = 'unexplained';

/** A request beyond the recorded attempts of its delivery. */
export interface Duplicate {
  key: string;
  /** Of a closed list: the reasons of the fault, or `UNEXPLAINED`. */
  reason: string;
  /** The request that it repeats. */
  firstAtMs: number;
  secondAtMs: number;
}

/**
 * Requests carry no number of their attempt. So the count is what was received less what is recorded, and the repeated
 * ones are those behind a success, or sooner than any retry could be.
 */
export function duplicatesOf(
  { key, sent, endpoint, arrivals }: AuditedDelivery,
  { shown, refusalsOf, delaysMs, excuses }: Evidence,
): Duplicate[] {
  const planned = Math.min(refusalsOf(sent.n, endpoint), delaysMs.length) + 1;
  const attempts = shown.get(key)?.attemptCount ?? planned;
  const extra = arrivals.length - attempts;
  if (extra <= 0) return [];
  return repeatsAmong(arrivals, delaysMs)
    .slice(0, extra)
    .map(([first, second]) => ({
      key,
      reason: excuseFor(first, excuses)?.reason ?? UNEXPLAINED,
      firstAtMs: first.atMs,
      secondAtMs: second.atMs,
    }));
}

type Pair = readonly [first: Arrival, second: Arrival];

/** The pairs of neighbours, those first that cannot be an attempt and its retry. */
function repeatsAmong(arrivals: readonly Arrival[], delaysMs: readonly number[]): Pair[] {
  const shortestMs = Math.min(...delaysMs);
  const pairs = arrivals.slice(1).flatMap((second, index): Pair[] => {
    const first = arrivals[index];
    return first ? [[first, second]] : [];
  });
  const isRepeat = ([first, second]: Pair): boolean =>
    isSuccess(first) || second.atMs - first.answeredAtMs < shortestMs;
  return [...pairs.filter(isRepeat), ...pairs.filter((pair) => !isRepeat(pair))];
}

function excuseFor(first: Arrival, excuses: readonly Excuse[]): Excuse | undefined {
  return excuses.find(({ fromMs, toMs }) => first.atMs <= toMs && first.answeredAtMs >= fromMs);
}

export function countByReason(duplicates: readonly Duplicate[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason } of duplicates) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}
