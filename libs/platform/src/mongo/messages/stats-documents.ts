import { requiredAt } from '@posthorn/domain/required.ts';
import {
  addCounts,
  type AttemptCounts,
  attemptsIn,
  beginningOf,
  HOUR_MS,
  MINUTE_MS,
  noAttempts,
  packCounts,
  type PackedCounts,
  successesIn,
  unpackCounts,
} from '@posthorn/domain/stats.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { DUPLICATE_KEY } from '../connect.ts';
import type { StatsDocument, UsageDocument } from '../documents.ts';

export type StatsOwnerKind = 'webhook' | 'app' | 'company';

/** The counts of one webhook, app or company in some minutes of one hour. */
export interface OwnerHour {
  kind: StatsOwnerKind;
  ownerId: string;
  companyId: string;
  /** The beginning of the hour, in milliseconds since 1970. */
  hourMs: number;
  /** By the beginning of the minute, in milliseconds since 1970. */
  minutes: Map<number, AttemptCounts>;
}

/** The usage of one company in one hour. */
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

export function noUsage(companyId: string, hourMs: number): UsageCounts {
  return {
    companyId,
    hourMs,
    messages: 0,
    messageBytes: 0,
    deliveries: 0,
    attempts: 0,
    succeeded: 0,
    sentBytes: 0,
  };
}

/** Both sort by time within their owner. */
export function hourId(ownerId: string, ms: number): string {
  return `${ownerId}/${new Date(beginningOf('hour', ms)).toISOString().slice(0, 13)}`;
}

/** The name of the minute within its hour: 0 to 59. */
function minuteName(ms: number): number {
  return Math.floor((ms % HOUR_MS) / MINUTE_MS);
}

/**
 * With more minutes than this, they are written as one text: MongoDB took 35 µs for the fields of each. Few minutes are
 * fields, so that an hour of many steps does not have a text for each.
 */
const MAX_MINUTE_FIELDS = 2;

/** One update for the hour and for the minutes in it. */
function addToHour(
  { kind, ownerId, companyId, hourMs, minutes }: OwnerHour,
  step: number,
): mongo.AnyBulkWriteOperation<StatsDocument> {
  const total = noAttempts();
  for (const counts of minutes.values()) addCounts(total, counts);
  const failed = kind === 'webhook' ? attemptsIn(total) - successesIn(total) : 0;
  const added = { ...increments('total', total), ...(failed > 0 && { failed }) };
  const longest: Record<string, number> = { 'total.maxDurationMs': total.maxDurationMs };
  const set: Record<string, unknown> = { step };
  const first: Record<string, unknown> = { companyId, kind, ownerId, at: new Date(hourMs) };
  if (minutes.size > MAX_MINUTE_FIELDS) {
    set[`packed.${step}`] = packMinutes(minutes);
  } else {
    for (const [minuteMs, counts] of minutes) {
      const path = `minutes.${minuteName(minuteMs)}`;
      Object.assign(added, increments(path, counts));
      longest[`${path}.maxDurationMs`] = counts.maxDurationMs;
    }
  }
  return {
    updateOne: {
      filter: notIn(step, hourId(ownerId, hourMs)),
      update: {
        $setOnInsert: first,
        $set: set,
        $inc: added,
        $max: longest,
      },
      upsert: true,
    },
  };
}

type PackedMinutes = [minute: number, counts: PackedCounts][];

function packMinutes(minutes: OwnerHour['minutes']): string {
  const packed: PackedMinutes = [];
  for (const [minuteMs, counts] of minutes) packed.push([minuteName(minuteMs), packCounts(counts)]);
  return JSON.stringify(packed);
}

/** Returns the minutes of a stored hour, by their beginning in milliseconds since 1970, in ascending order. */
export function minutesOf({
  at,
  minutes = {},
  packed = {},
}: Pick<StatsDocument, 'at' | 'packed'> & Partial<StatsDocument>): Map<number, AttemptCounts> {
  const byMinute = new Map<number, AttemptCounts>();
  const add = (minute: number, counts: Partial<AttemptCounts>): void => {
    const sum = byMinute.get(minute) ?? noAttempts();
    addCounts(sum, counts);
    byMinute.set(minute, sum);
  };
  for (const [name, counts] of Object.entries(minutes)) add(Number(name), counts);
  for (const text of Object.values(packed)) {
    for (const [minute, counts] of JSON.parse(text) as PackedMinutes)
      add(minute, unpackCounts(counts));
  }
  const sorted = [...byMinute].sort(([a], [b]) => a - b);
  return new Map(sorted.map(([minute, counts]) => [at.getTime() + minute * MINUTE_MS, counts]));
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

function addToUsage(
  { companyId, hourMs, ...counts }: UsageCounts,
  step: number,
): mongo.AnyBulkWriteOperation<UsageDocument> {
  return {
    updateOne: {
      filter: notIn(step, hourId(companyId, hourMs)),
      update: {
        $setOnInsert: { companyId, at: new Date(hourMs) },
        $set: { step },
        $inc: counts,
      },
      upsert: true,
    },
  };
}

/** Matches the document unless this step, or a later one, has been added to it. */
function notIn(step: number, _id: string): { _id: string; step: { $not: { $gte: number } } } {
  return { _id, step: { $not: { $gte: step } } };
}

/**
 * Adds to what is stored. The steps of one company have growing numbers, and one ends before the next one begins: so a
 * call that may have added some of it is repeated with the same values and the same number, and adds the others.
 */
export interface StatsStore {
  addHours: (hours: readonly OwnerHour[], step: number) => Promise<void>;
  addUsage: (usage: readonly UsageCounts[], step: number) => Promise<void>;
}

/** Minutes, or hours of usage, in one write: more would block the event loop for a tenth of a second. */
const MAX_PER_WRITE = 1_000;

export function createStatsStore(db: mongo.Db): StatsStore {
  const stats = collection(db, 'stats');
  const usage = collection(db, 'usage');
  return {
    async addHours(hours, step) {
      for (const some of slicesOf(hours, MAX_PER_WRITE, ({ minutes }) => minutes.size)) {
        await addOnce(some, (values) =>
          stats.bulkWrite(
            values.map((hour) => addToHour(hour, step)),
            { ordered: false },
          ),
        );
      }
    },
    async addUsage(counts, step) {
      for (const some of slicesOf(counts, MAX_PER_WRITE, () => 1)) {
        await addOnce(some, (values) =>
          usage.bulkWrite(
            values.map((hour) => addToUsage(hour, step)),
            { ordered: false },
          ),
        );
      }
    },
  };
}

/**
 * The first refusal of a document: the step was added to it before, or another process has just made it. Then the second
 * attempt adds to it. A second refusal is of a document that has the step.
 */
async function addOnce<Value>(
  values: readonly Value[],
  write: (values: readonly Value[]) => Promise<unknown>,
): Promise<void> {
  const refused = await duplicatesOf(values, write);
  if (refused.length > 0) await duplicatesOf(refused, write);
}

/** Returns the values whose document exists already. Throws what else went wrong. */
export async function duplicatesOf<Value>(
  values: readonly Value[],
  write: (values: readonly Value[]) => Promise<unknown>,
): Promise<readonly Value[]> {
  try {
    await write(values);
    return [];
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
    const errors = [error.writeErrors].flat();
    // The driver throws the same error with an empty list when the server did not respond.
    const isAnswered = errors.length > 0 && !error.result.getWriteConcernError();
    if (!isAnswered || !errors.every(({ code }) => code === DUPLICATE_KEY)) throw error;
    return errors.map(({ index }) => requiredAt(values, index, 'value of the batch'));
  }
}

/** Cuts a list into slices whose sizes add up to `max` at most; a larger value has a slice of its own. */
export function* slicesOf<Value>(
  values: readonly Value[],
  max: number,
  sizeOf: (value: Value) => number,
): Generator<Value[]> {
  let slice: Value[] = [];
  let size = 0;
  for (const value of values) {
    const more = sizeOf(value);
    if (slice.length > 0 && size + more > max) {
      yield slice;
      [slice, size] = [[], 0];
    }
    slice.push(value);
    size += more;
  }
  if (slice.length > 0) yield slice;
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
