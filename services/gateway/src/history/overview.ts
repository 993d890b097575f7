import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import type { LagReason } from '@posthorn/domain/ingest-lag.ts';
import {
  addCounts,
  type AttemptCounts,
  attemptsIn,
  durationFiguresOf,
  noAttempts,
  type Range,
  type RangeSpan,
  type Span,
  spanOfRange,
  type Step,
  STEP_MS,
  successesIn,
} from '@posthorn/domain/stats.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type {
  FailingWebhook,
  StatsPoint,
  StatsQueries,
} from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { type Pending, readCircuits, type ReadCircuitsDeps, readPending } from './counts.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

/** Records of a company's topics that are not accepted yet. */
export interface MeasuredLag {
  records: number;
  /** Why those of the partition with the most of them wait; null without any. */
  reason: LagReason | null;
}

/**
 * Resolves within half a second to the lag of a company as it was measured last; null when it has no topic, or that is not
 * known yet.
 */
export type IngestLag = (companyId: string) => Promise<MeasuredLag | null>;

interface ReadOverviewDeps extends ReadCircuitsDeps {
  db: Database;
  stats: Pick<StatsQueries, 'readSteps' | 'readFailing'>;
  ingestLag: IngestLag;
  nowMs: () => number;
}

interface AskedOverview {
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
  /** Null without Redis. */
  openCircuits: number | null;
  /** Null when the company has no topic. */
  ingestLag: MeasuredLag | null;
  /** Every step of the range, the oldest first. */
  series: { atMs: number; delivered: number; failed: number }[];
  worst: WorstWebhook[];
}

export interface WorstWebhook {
  webhook: WebhookOutline;
  /** From 0 to 1. */
  successRatio: number;
  failed: number;
  /** The outcome of most of the failed attempts. */
  reason: Outcome;
  /** The beginning of the first minute or hour of the range with a failure. */
  sinceMs: number;
}

const WORST = 10;

/** Reads roll-ups and the indexes of pending deliveries, and never the deliveries themselves. */
export async function readOverview(
  deps: ReadOverviewDeps,
  asked: AskedOverview,
): Promise<Overview> {
  const { companyId, ownerId, appId, webhookId, range } = asked;
  const asOfMs = deps.nowMs();
  const ranged = spanOfRange(range, asOfMs);
  const isOfCompany = ownerId === companyId;
  const [points, pending, circuits, worst, ingestLag] = await Promise.all([
    deps.stats.readSteps({ companyId, ownerId }, ranged.step, ranged.span),
    readPending(deps.db, { companyId, appId, webhookId }),
    readCircuits(deps, companyId, { appId, webhookId }).catch(() => null),
    readWorst(deps, asked, ranged),
    isOfCompany ? deps.ingestLag(companyId) : null,
  ]);
  const counts = noAttempts();
  for (const point of points) addCounts(counts, point.counts);
  const latencyMs = durationFiguresOf(counts);
  const openCircuits = circuits?.length ?? null;
  const series = seriesOf(points, ranged);
  return { asOfMs, counts, latencyMs, pending, openCircuits, ingestLag, series, worst };
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
      if (!webhook) throw new ImpossibleError('worstOf returned a webhook without its outline');
      const attempts = await attemptsTo(stats, companyId, each, { step, span });
      const failed = failuresOf(each);
      const sinceMs = Math.min(...[...each.seen.values()].map(({ firstMs }) => firstMs));
      const successRatio = Math.max(0, attempts - failed) / Math.max(attempts, failed);
      return { webhook, successRatio, failed, reason: mainReason(each), sinceMs };
    }),
  );
}

/** Counts all attempts, those of hours without a failure included. */
async function attemptsTo(
  stats: Pick<StatsQueries, 'readSteps'>,
  companyId: string,
  { webhookId }: FailingWebhook,
  { step, span }: { step: Step; span: Span },
): Promise<number> {
  const points = await stats.readSteps({ companyId, ownerId: webhookId }, step, span);
  return points.reduce((sum, { counts }) => sum + attemptsIn(counts), 0);
}

interface KnownFailing {
  /** The worst first. */
  failing: FailingWebhook[];
  outlines: Map<string, WebhookOutline>;
}

interface FailingFilter {
  companyId: string;
  appId: string | undefined;
  webhookId?: string | undefined;
}

/** Webhooks that are looked up at a time. */
const PAGE = 200;
const MAX_PAGES = 10;

/**
 * Returns the worst webhooks that exist, of one app if the filter names it, at most `limit`. Only the worst 2,000 of the
 * company are searched.
 */
export async function worstOf(
  readOutlines: ReadWebhookOutlines,
  all: readonly FailingWebhook[],
  { companyId, appId, webhookId }: FailingFilter,
  limit: number,
): Promise<KnownFailing> {
  const sorted = worstFirst(
    webhookId === undefined ? all : all.filter((each) => each.webhookId === webhookId),
  );
  const failing: FailingWebhook[] = [];
  const outlines = new Map<string, WebhookOutline>();
  for (let page = 0; page < MAX_PAGES && failing.length < limit; page += 1) {
    const some = sorted.slice(page * PAGE, (page + 1) * PAGE);
    if (some.length === 0) break;
    const ids = some.map((each) => each.webhookId);
    const found = await readOutlines(companyId, ids);
    for (const each of some) {
      const outline = found.get(each.webhookId);
      if (!outline || (appId !== undefined && outline.appId !== appId)) continue;
      if (failing.length === limit) break;
      failing.push(each);
      outlines.set(outline.id, outline);
    }
  }
  return { failing, outlines };
}

/** The failed attempts to one webhook with one outcome. */
export interface FailureGroup {
  webhook: WebhookOutline;
  outcome: Outcome;
  count: number;
  firstMs: number;
  lastMs: number;
}

function failuresOf({ counts }: FailingWebhook): number {
  return attemptsIn(counts) - successesIn(counts);
}

/** The webhooks with the most failed attempts first. */
function worstFirst(failing: readonly FailingWebhook[]): FailingWebhook[] {
  return failing.toSorted(
    (a, b) => failuresOf(b) - failuresOf(a) || (a.webhookId < b.webhookId ? -1 : 1),
  );
}

/** Returns a group for each outcome but success of each webhook that exists, the largest first. */
export function failureGroups(
  failing: readonly FailingWebhook[],
  outlines: ReadonlyMap<string, WebhookOutline>,
): FailureGroup[] {
  return failing
    .flatMap(({ webhookId, counts, seen }) => {
      const webhook = outlines.get(webhookId);
      if (!webhook) return [];
      return [...seen].map(([outcome, span]) => {
        return { webhook, outcome, count: counts.outcomes[outcome] ?? 0, ...span };
      });
    })
    .sort((a, b) => b.count - a.count);
}

/** Returns the outcome that most of the failed attempts had. */
function mainReason({ counts }: FailingWebhook): Outcome {
  const failures = Object.entries(counts.outcomes).filter(([outcome]) => outcome !== 'success');
  const [most] = failures.sort(([, a], [, b]) => b - a);
  if (!most) throw new ImpossibleError('no failed attempt of a webhook that readFailing returned');
  return most[0] as Outcome;
}
