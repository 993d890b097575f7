import {
  attemptsIn,
  successesIn,
  type AttemptCounts,
} from '@posthorn/domain/stats/attempt-counts.ts';
import { durationFiguresOf } from '@posthorn/domain/stats/durations.ts';
import type { EndpointCounts } from '@posthorn/platform/mongo/stats/stats-queries.ts';

/** An endpoint as it is printed. */
export interface WorstEndpoint {
  webhookId: string;
  companyId: string;
  attempts: number;
  failed: number;
  /** Of the attempts, from 0 to 1, to three digits. */
  failedShare: number;
  p95Ms: number;
  /** Of the failures, the most frequent first, as in `timeout 12, http_5xx 3`. */
  failures: string;
}

/** Returns the endpoints with the most failures, at most `limit`; none that had no failure. */
export function worstEndpoints(
  endpoints: readonly EndpointCounts[],
  limit: number,
): WorstEndpoint[] {
  return endpoints
    .map(describe)
    .filter(({ failed }) => failed > 0)
    .sort((a, b) => b.failed - a.failed || b.failedShare - a.failedShare)
    .slice(0, limit);
}

function describe({ webhookId, companyId, counts }: EndpointCounts): WorstEndpoint {
  const attempts = attemptsIn(counts);
  const failed = attempts - successesIn(counts);
  return {
    webhookId,
    companyId,
    attempts,
    failed,
    failedShare: attempts === 0 ? 0 : Math.round((1_000 * failed) / attempts) / 1_000,
    p95Ms: durationFiguresOf(counts)?.p95 ?? 0,
    failures: failuresIn(counts),
  };
}

function failuresIn({ outcomes }: AttemptCounts): string {
  return Object.entries(outcomes)
    .filter(([outcome]) => outcome !== 'success')
    .sort(([, a], [, b]) => b - a)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(', ');
}
