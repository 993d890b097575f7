import {
  addCounts,
  type AttemptCounts,
  beginningOf,
  MINUTE_MS,
  noAttempts,
  type Span,
  type Step,
} from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { StatsDocument } from '../documents/documents.ts';
import {
  readFailingByMinute,
  readFailingWebhooks,
  type FailingWebhook,
} from './failing-webhooks.ts';
import { hourId, type UsageCounts } from './stats-documents.ts';

/** The attempts that ended in one minute, hour or day. */
export interface StatsPoint {
  /** Its beginning, in milliseconds since 1970. */
  atMs: number;
  counts: AttemptCounts;
}

/** A webhook, an app or the company itself. */
export interface StatsOwner {
  companyId: string;
  ownerId: string;
}

export type CompanyUsage = Omit<UsageCounts, 'hourMs'>;

/** Reads what was counted. */
export interface StatsQueries {
  /** Returns the steps of the span with an attempt, oldest first. The span consists of whole steps. */
  readSteps: (owner: StatsOwner, step: Step, span: Span) => Promise<StatsPoint[]>;
  /** Returns the webhooks of the company that failed in this span, by whole hours or minutes, in no order. */
  readFailing: (companyId: string, step: Step, span: Span) => Promise<FailingWebhook[]>;
  /** Returns the webhooks of every company with an attempt in this whole hour and no success. */
  readFailingIn: (hourMs: number) => Promise<{ webhookId: string; companyId: string }[]>;
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
  const hours = hoursOf(db, owner, span).project<StatsDocument>({ at: 1, minutes: 1 });
  for await (const { at, minutes } of hours) {
    // MongoDB keeps the order in which they were first counted.
    for (const name of Object.keys(minutes)
      .map(Number)
      .sort((a, b) => a - b)) {
      const atMs = at.getTime() + name * MINUTE_MS;
      if (atMs >= span.fromMs && atMs < span.toMs) {
        points.push({ atMs, counts: countsOf(minutes[name]) });
      }
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
