import {
  addCounts,
  attemptsIn,
  noAttempts,
  successesIn,
  type AttemptCounts,
} from '@posthorn/domain/stats/attempt-counts.ts';
import { durationFiguresOf } from '@posthorn/domain/stats/durations.ts';
import { spanOfRange, type Range, type RangeSpan } from '@posthorn/domain/stats/ranges.ts';
import { STEP_MS, type Span, type Step } from '@posthorn/domain/stats/steps.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { FailingWebhook } from '@posthorn/platform/mongo/stats/failing-webhooks.ts';
import type { StatsPoint, StatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import { failuresOf, mainReason } from './failure-groups.ts';
import { worstOf } from './failing-in-app.ts';
import type { ReadCircuits } from './read-circuits.ts';
import type { Pending, ReadPending } from './read-pending.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

export interface ReadOverviewDeps {
  stats: Pick<StatsQueries, 'readSteps' | 'readFailing'>;
  readPending: ReadPending;
  readCircuits: ReadCircuits;
  readOutlines: ReadWebhookOutlines;
  nowMs: () => number;
}

export interface AskedOverview {
  companyId: string;
  /** The webhook, the app or the company. */
  ownerId: string;
  appId: string | undefined;
  webhookId: string | undefined;
  range: Range;
}

export interface Overview {
  asOfMs: number;
  /** Of all attempts in the range. */
  counts: AttemptCounts;
  latencyMs: { p50: number; p99: number } | null;
  pending: Pending;
  /** Null while they are not known, without Redis. */
  openCircuits: number | null;
  /** Every step of the range, the oldest first. */
  series: { atMs: number; delivered: number; failed: number }[];
  worst: WorstWebhook[];
}

export interface WorstWebhook {
  webhook: WebhookOutline;
  /** From 0 to 1. */
  successRatio: number;
  failed: number;
  /** What most of the failed attempts had as their outcome. */
  reason: Outcome;
  /** The beginning of the first minute or hour of the range with a failure. */
  sinceMs: number;
}

export type ReadOverview = (asked: AskedOverview) => Promise<Overview>;

const WORST = 10;

/** Reads roll-ups, and the indexes of what is pending: never the deliveries themselves. */
export function createReadOverview(deps: ReadOverviewDeps): ReadOverview {
  const { stats, readPending, readCircuits, nowMs } = deps;
  return async (asked) => {
    const { companyId, ownerId, appId, webhookId, range } = asked;
    const asOfMs = nowMs();
    const ranged = spanOfRange(range, asOfMs);
    const [points, pending, circuits, worst] = await Promise.all([
      stats.readSteps({ companyId, ownerId }, ranged.step, ranged.span),
      readPending({ companyId, appId, webhookId }),
      readCircuits(companyId, { appId, webhookId }).catch(() => null),
      readWorst(deps, asked, ranged),
    ]);
    const counts = noAttempts();
    for (const point of points) addCounts(counts, point.counts);
    const latencyMs = durationFiguresOf(counts);
    const openCircuits = circuits?.length ?? null;
    const series = seriesOf(points, ranged);
    return { asOfMs, counts, latencyMs, pending, openCircuits, series, worst };
  };
}

function seriesOf(points: readonly StatsPoint[], { step, span }: RangeSpan): Overview['series'] {
  const byTime = new Map(points.map(({ atMs, counts }) => [atMs, counts]));
  const length = (span.toMs - span.fromMs) / STEP_MS[step];
  return Array.from({ length }, (_, n) => {
    const atMs = span.fromMs + n * STEP_MS[step];
    const counts = byTime.get(atMs) ?? noAttempts();
    const delivered = successesIn(counts);
    return { atMs, delivered, failed: attemptsIn(counts) - delivered };
  });
}

async function readWorst(
  { stats, readOutlines }: ReadOverviewDeps,
  { companyId, appId, webhookId }: AskedOverview,
  { step, span }: RangeSpan,
): Promise<WorstWebhook[]> {
  const all = await stats.readFailing(companyId, step, span);
  const filter = { companyId, appId, webhookId };
  const { failing, outlines } = await worstOf(readOutlines, all, filter, WORST);
  return Promise.all(
    failing.map(async (each) => {
      const webhook = outlines.get(each.webhookId);
      if (!webhook) throw new Error('a webhook without an outline');
      const attempts = await attemptsTo(stats, companyId, each, { step, span });
      const failed = failuresOf(each);
      const sinceMs = Math.min(...[...each.seen.values()].map(({ firstMs }) => firstMs));
      const successRatio = Math.max(0, attempts - failed) / Math.max(attempts, failed);
      return { webhook, successRatio, failed, reason: mainReason(each), sinceMs };
    }),
  );
}

/** Also of the hours without a failure. */
async function attemptsTo(
  stats: Pick<StatsQueries, 'readSteps'>,
  companyId: string,
  { webhookId }: FailingWebhook,
  { step, span }: { step: Step; span: Span },
): Promise<number> {
  const points = await stats.readSteps({ companyId, ownerId: webhookId }, step, span);
  return points.reduce((sum, { counts }) => sum + attemptsIn(counts), 0);
}
