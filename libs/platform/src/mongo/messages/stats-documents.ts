import { requiredAt } from '@posthorn/domain/required.ts';
import {
  type AttemptCounts,
  attemptsIn,
  beginningOf,
  HOUR_MS,
  MINUTE_MS,
  successesIn,
} from '@posthorn/domain/stats.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { StatsDocument, UsageDocument } from '../documents.ts';

export type StatsOwnerKind = 'webhook' | 'app' | 'company';

/** What happened to one webhook, app or company in one minute. */
export interface MinuteCounts {
  kind: StatsOwnerKind;
  ownerId: string;
  companyId: string;
  /** The beginning of the minute, in milliseconds since 1970. */
  minuteMs: number;
  counts: AttemptCounts;
}

/** What one company used in one hour. */
export interface UsageCounts {
  companyId: string;
  /** The beginning of the hour, in milliseconds since 1970. */
  hourMs: number;
  messages: number;
  messageBytes: number;
  deliveries: number;
  attempts: number;
  succeeded: number;
  /** Bytes of the payloads that were sent. */
  sentBytes: number;
}

/** Both sort by time within their owner. */
export function hourId(ownerId: string, ms: number): string {
  return `${ownerId}/${new Date(beginningOf('hour', ms)).toISOString().slice(0, 13)}`;
}

/** The name of the minute within its hour: 0 to 59. */
function minuteName(ms: number): number {
  return Math.floor((ms % HOUR_MS) / MINUTE_MS);
}

/** One update for the hour and for the minute in it. */
function addToHour({
  kind,
  ownerId,
  companyId,
  minuteMs,
  counts,
}: MinuteCounts): mongo.AnyBulkWriteOperation<StatsDocument> {
  const minute = `minutes.${minuteName(minuteMs)}`;
  const failed = kind === 'webhook' ? attemptsIn(counts) - successesIn(counts) : 0;
  const at = new Date(beginningOf('hour', minuteMs));
  return {
    updateOne: {
      filter: { _id: hourId(ownerId, minuteMs) },
      update: {
        $setOnInsert: { companyId, kind, ownerId, at },
        $inc: {
          ...increments('total', counts),
          ...increments(minute, counts),
          ...(failed > 0 && { failed }),
        },
        $max: {
          'total.maxDurationMs': counts.maxDurationMs,
          [`${minute}.maxDurationMs`]: counts.maxDurationMs,
        },
      },
      upsert: true,
    },
  };
}

function increments(path: string, counts: AttemptCounts): Record<string, number> {
  const { outcomes, durations, firstAttempts, payloadBytes, durationMs } = counts;
  const added: Record<string, number> = { [`${path}.durationMs`]: durationMs };
  if (firstAttempts > 0) added[`${path}.firstAttempts`] = firstAttempts;
  if (payloadBytes > 0) added[`${path}.payloadBytes`] = payloadBytes;
  for (const [name, count] of Object.entries(outcomes)) added[`${path}.outcomes.${name}`] = count;
  for (const [name, count] of Object.entries(durations)) added[`${path}.durations.${name}`] = count;
  return added;
}

function addToUsage({
  companyId,
  hourMs,
  ...counts
}: UsageCounts): mongo.AnyBulkWriteOperation<UsageDocument> {
  return {
    updateOne: {
      filter: { _id: hourId(companyId, hourMs) },
      update: { $setOnInsert: { companyId, at: new Date(hourMs) }, $inc: counts },
      upsert: true,
    },
  };
}

/**
 * Adds to what is stored. Each resolves with those that MongoDB refused, of which nothing was added. A call that
 * rejects may have added all of them: the driver tries once more by itself, and MongoDB knows a repeated update.
 */
export interface StatsStore {
  addMinutes: (minutes: readonly MinuteCounts[]) => Promise<readonly MinuteCounts[]>;
  addUsage: (usage: readonly UsageCounts[]) => Promise<readonly UsageCounts[]>;
}

export function createStatsStore(db: mongo.Db): StatsStore {
  const stats = collection(db, 'stats');
  const usage = collection(db, 'usage');
  return {
    addMinutes: (minutes) =>
      refusedOf(minutes, () => stats.bulkWrite(minutes.map(addToHour), { ordered: false })),
    addUsage: (counts) =>
      refusedOf(counts, () => usage.bulkWrite(counts.map(addToUsage), { ordered: false })),
  };
}

/** Two processes that insert the same document at once: the second one is refused, and adds to it next time. */
async function refusedOf<Value>(
  values: readonly Value[],
  write: () => Promise<unknown>,
): Promise<readonly Value[]> {
  try {
    await write();
    return [];
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
    const refused = [error.writeErrors].flat();
    // The driver throws the same error with an empty list when the server did not respond.
    if (refused.length === 0) throw error;
    return refused.map(({ index }) => requiredAt(values, index, 'value of the batch'));
  }
}

/**
 * Removes the statistics of these webhooks and apps, in one request: one for each of them took two minutes of the
 * removal of 30,000 webhooks. A webhook has 720 documents in 30 days. What a dispatcher counted before it knew of the
 * removal, and writes after it, expires.
 */
export async function removeStats(
  db: mongo.Db,
  companyId: string,
  ownerIds: readonly string[],
): Promise<void> {
  // '0' is the character after '/'.
  const ranges = ownerIds.map((id) => ({ _id: { $gte: `${id}/`, $lt: `${id}0` } }));
  await documentsOf(db, 'stats', companyId).deleteEach(ranges);
}
