import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import {
  addCounts,
  type AttemptCounts,
  beginningOf,
  HOUR_MS,
  noAttempts,
  type Span,
  type Step,
} from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { StatsDocument } from '../documents.ts';
import { journalTime } from './count-journal.ts';
import { hourId, minutesOf, type UsageCounts } from './stats-documents.ts';

/** The attempts that ended in one minute, hour or day. */
export interface StatsPoint {
  /** Its beginning, in milliseconds since 1970. */
  atMs: number;
  counts: AttemptCounts;
}

/** A webhook, an app or the company itself. */
interface StatsOwner {
  companyId: string;
  ownerId: string;
}

type CompanyUsage = Omit<UsageCounts, 'hourMs'>;

/** Reads what was counted. */
export interface StatsQueries {
  /** Returns the steps of the span with an attempt, oldest first. The span consists of whole steps. */
  readSteps: (owner: StatsOwner, step: Step, span: Span) => Promise<StatsPoint[]>;
  /** Returns the webhooks of the company that failed in this span, by whole hours or minutes, in no order. */
  readFailing: (companyId: string, step: Step, span: Span) => Promise<FailingWebhook[]>;
  /** Returns the webhooks of every company with an attempt in this whole hour and no success. */
  readFailingIn: (hourMs: number) => Promise<{ webhookId: string; companyId: string }[]>;
  /** False while some of what was counted before this time is not added up yet. */
  isAddedUpTo: (ms: number) => Promise<boolean>;
  /** Whether any attempt to any endpoint succeeded in this whole hour. */
  hasSuccessIn: (hourMs: number) => Promise<boolean>;
  /** Returns the companies that used something in these whole hours, by id. */
  readUsage: (span: Span) => Promise<CompanyUsage[]>;
}

export function createStatsQueries(db: mongo.Db): StatsQueries {
  return {
    readSteps: (owner, step, span) =>
      step === 'minute' ? readMinutes(db, owner, span) : readHours(db, owner, step, span),
    readFailing: (companyId, step, span) =>
      step === 'minute'
        ? readFailingByMinute(db, companyId, span)
        : readFailingWebhooks(db, companyId, span),
    readFailingIn: (hourMs) => readFailingIn(db, hourMs),
    async isAddedUpTo(ms) {
      const earlier = { _id: { $lt: journalTime(ms) } };
      return (await collection(db, 'countJournal').findOne(earlier)) === null;
    },
    async hasSuccessIn(hourMs) {
      const filter = { ...webhooksIn(hourMs), [SUCCESSES]: { $gt: 0 } };
      return (await collection(db, 'stats').countDocuments(filter, { limit: 1 })) > 0;
    },
    readUsage: (span) => readUsage(db, span),
  };
}

function hoursOf(
  db: mongo.Db,
  { companyId, ownerId }: StatsOwner,
  { fromMs, toMs }: Span,
): mongo.FindCursor<mongo.WithId<StatsDocument>> {
  const _id = { $gte: hourId(ownerId, fromMs), $lte: hourId(ownerId, toMs - 1) };
  return documentsOf(db, 'stats', companyId).find({ _id }).sort({ _id: 1 });
}

async function readMinutes(db: mongo.Db, owner: StatsOwner, span: Span): Promise<StatsPoint[]> {
  const points: StatsPoint[] = [];
  const hours = hoursOf(db, owner, span).project<StatsDocument>({ at: 1, minutes: 1, packed: 1 });
  for await (const hour of hours) {
    for (const [atMs, counts] of minutesOf(hour)) {
      if (atMs >= span.fromMs && atMs < span.toMs) points.push({ atMs, counts });
    }
  }
  return points;
}

async function readHours(
  db: mongo.Db,
  owner: StatsOwner,
  step: Step,
  span: Span,
): Promise<StatsPoint[]> {
  const points: StatsPoint[] = [];
  const hours = hoursOf(db, owner, span).project<StatsDocument>({ at: 1, total: 1 });
  for await (const { at, total } of hours) {
    const atMs = beginningOf(step, at.getTime());
    const last = points.at(-1);
    if (last?.atMs === atMs) addCounts(last.counts, total);
    else points.push({ atMs, counts: countsOf(total) });
  }
  return points;
}

function countsOf(stored: Partial<AttemptCounts> = {}): AttemptCounts {
  const counts = noAttempts();
  addCounts(counts, stored);
  return counts;
}

const SUCCESSES = 'total.outcomes.success';

const webhooksIn = (hourMs: number) => ({ at: new Date(hourMs), kind: 'webhook' }) as const;

async function readFailingIn(
  db: mongo.Db,
  hourMs: number,
): Promise<{ webhookId: string; companyId: string }[]> {
  const found = await collection(db, 'stats')
    .find({ ...webhooksIn(hourMs), [SUCCESSES]: { $exists: false } })
    .project<StatsOwner>({ _id: 0, companyId: 1, ownerId: 1 })
    .toArray();
  return found.map(({ ownerId: webhookId, companyId }) => ({ webhookId, companyId }));
}

const SUMMED = [
  'messages',
  'messageBytes',
  'deliveries',
  'attempts',
  'succeeded',
  'sentBytes',
] as const satisfies readonly (keyof CompanyUsage)[];

/** The fields of a company's usage, in their order. */
export const USAGE_FIELDS = ['companyId', ...SUMMED] as const;

function readUsage(db: mongo.Db, { fromMs, toMs }: Span): Promise<CompanyUsage[]> {
  const sums = Object.fromEntries(SUMMED.map((name) => [name, { $sum: `$${name}` }] as const));
  const shown = Object.fromEntries(SUMMED.map((name) => [name, 1] as const));
  return collection(db, 'usage')
    .aggregate<CompanyUsage>([
      { $match: { at: { $gte: new Date(fromMs), $lt: new Date(toMs) } } },
      { $group: { _id: '$companyId', ...sums } },
      { $sort: { _id: 1 } },
      { $project: { _id: 0, companyId: '$_id', ...shown } },
    ])
    .toArray();
}

/** A webhook with failed attempts in a span of time. */
export interface FailingWebhook {
  webhookId: string;
  /** The counts of the hours with a failure only: without the successes of other hours. */
  counts: AttemptCounts;
  /** When each outcome but success was first and last counted, to the hour or the minute. */
  seen: Map<Outcome, Seen>;
}

/** The beginnings of the first and the last step, in milliseconds since 1970. */
interface Seen {
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
async function readFailingWebhooks(
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
async function readFailingByMinute(
  db: mongo.Db,
  companyId: string,
  span: Span,
): Promise<FailingWebhook[]> {
  const byId = new Map<string, FailingWebhook>();
  const hours = { fromMs: span.fromMs - (span.fromMs % HOUR_MS), toMs: span.toMs };
  const fields = { ownerId: 1, at: 1, minutes: 1, packed: 1 };
  const found = failingHours(db, companyId, hours).limit(MAX_HOURS_WITH_MINUTES);
  for await (const document of found.project<StatsDocument>(fields)) {
    for (const [atMs, counts] of minutesOf(document)) {
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
