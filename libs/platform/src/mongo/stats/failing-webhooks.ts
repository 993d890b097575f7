import {
  addCounts,
  type AttemptCounts,
  HOUR_MS,
  MINUTE_MS,
  noAttempts,
  type Span,
} from '@posthorn/domain/stats.ts';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';
import type { StatsDocument } from '../documents/documents.ts';

/** A webhook with failed attempts in a span of time. */
export interface FailingWebhook {
  webhookId: string;
  /** Of the hours with a failure only: without the successes of other hours. */
  counts: AttemptCounts;
  /** When each outcome but success was first and last counted, to the hour or the minute. */
  seen: Map<Outcome, Seen>;
}

/** The beginnings of the first and the last step, in milliseconds since 1970. */
export interface Seen {
  firstMs: number;
  lastMs: number;
}

/**
 * Hours of webhooks that are read at most, the newest ones: 10,000 in 0.2 s. With more, what failed long ago is
 * missing.
 */
const MAX_HOURS = 10_000;
/** With their minutes they are eleven times as long. */
const MAX_HOURS_WITH_MINUTES = 1_000;

/** Returns the webhooks of the company with a failed attempt in these whole hours, in no order. */
export async function readFailingWebhooks(
  db: mongo.Db,
  companyId: string,
  span: Span,
): Promise<FailingWebhook[]> {
  const byId = new Map<string, FailingWebhook>();
  const fields = { ownerId: 1, at: 1, 'total.outcomes': 1 };
  const found = failingHours(db, companyId, span).limit(MAX_HOURS);
  for await (const { ownerId, at, total } of found.project<StatsDocument>(fields)) {
    addStep(byId, { webhookId: ownerId, counts: total, atMs: at.getTime() });
  }
  return [...byId.values()];
}

/** Does the same for whole minutes of a few hours. */
export async function readFailingByMinute(
  db: mongo.Db,
  companyId: string,
  span: Span,
): Promise<FailingWebhook[]> {
  const byId = new Map<string, FailingWebhook>();
  const hours = { fromMs: span.fromMs - (span.fromMs % HOUR_MS), toMs: span.toMs };
  const fields = { ownerId: 1, at: 1, minutes: 1 };
  const found = failingHours(db, companyId, hours).limit(MAX_HOURS_WITH_MINUTES);
  for await (const document of found.project<StatsDocument>(fields)) {
    for (const { atMs, counts } of minutesOf(document)) {
      if (atMs < span.fromMs || atMs >= span.toMs) continue;
      addStep(byId, { webhookId: document.ownerId, counts, atMs });
    }
  }
  return [...byId.values()].filter(({ seen }) => seen.size > 0);
}

function failingHours(
  db: mongo.Db,
  companyId: string,
  { fromMs, toMs }: Span,
): mongo.FindCursor<mongo.WithId<StatsDocument>> {
  const at = { $gte: new Date(fromMs), $lt: new Date(toMs) };
  return documentsOf(db, 'stats', companyId)
    .find({ failed: { $gt: 0 }, at })
    .sort({ at: -1 });
}

function minutesOf({ at, minutes }: StatsDocument): Omit<CountedStep, 'webhookId'>[] {
  return Object.entries(minutes).map(([name, counts]) => {
    return { atMs: at.getTime() + Number(name) * MINUTE_MS, counts };
  });
}

interface CountedStep {
  webhookId: string;
  counts: Partial<AttemptCounts>;
  atMs: number;
}

function addStep(
  byId: Map<string, FailingWebhook>,
  { webhookId, counts, atMs }: CountedStep,
): void {
  const known = byId.get(webhookId) ?? {
    webhookId,
    counts: noAttempts(),
    seen: new Map<Outcome, Seen>(),
  };
  byId.set(webhookId, known);
  addCounts(known.counts, counts);
  for (const outcome of Object.keys(counts.outcomes ?? {}) as Outcome[]) {
    if (outcome === 'success') continue;
    const { firstMs, lastMs } = known.seen.get(outcome) ?? { firstMs: atMs, lastMs: atMs };
    known.seen.set(outcome, {
      firstMs: Math.min(firstMs, atMs),
      lastMs: Math.max(lastMs, atMs),
    });
  }
}
