import { randomBytes } from 'node:crypto';
import { DAY_MS, dayName } from '@posthorn/domain/ids/days.ts';
import { createIdFactory } from '@posthorn/domain/ids/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import { dayDatabaseName, type DayKind } from '@posthorn/platform/mongo/days/days.ts';
import type { mongo } from 'mongoose';
import type { Targets } from '../../scenario.ts';
import { sampleDocuments } from '../sample-documents.ts';

/** Whose messages the store is filled with. */
export interface HistoryOwner extends Targets {
  companyId: string;
}

export interface FillDeps {
  db: mongo.Db;
  owner: HistoryOwner;
  signal: AbortSignal;
  log: (line: string) => void;
}

export interface Filled {
  /** The number of the oldest day. */
  firstDay: number;
  days: number;
  deliveries: number;
}

const BATCH = 1_000;
/** One in so many deliveries is exhausted. */
const EXHAUSTED_EVERY = 50;
/** One in so many messages has the rare event type. */
const RARE_EVERY = 20_000;
export const RARE_EVENT_TYPE = 'order.refunded';
/** Messages whose ids are kept for reads of one message. */
const SAMPLES_PER_DAY = 100;
/** Samples need not survive a crash. */
const FAST = { ordered: false, writeConcern: { w: 1, j: false } } as const;

/** Moves the beginning of days back. No process may have stored anything in the old collections. */
export async function beginDaysAt(db: mongo.Db, ms: number): Promise<void> {
  const layout = db.collection<{ _id: string }>('layout');
  const { matchedCount } = await layout.updateOne(
    { _id: 'days' },
    { $set: { beginAt: new Date(ms) } },
  );
  if (matchedCount === 0) throw new Error('The collection layout says nothing of days');
}

/** Stores the same number of messages, each with its delivery, in each day. Returns the ids of some. */
export async function fillDays(
  { db, owner, signal, log }: FillDeps,
  { firstDay, days, deliveries }: Filled,
): Promise<string[]> {
  const collections = createDayCollections(db);
  const ids: string[] = [];
  const perDay = Math.ceil(deliveries / days);
  for (let day = firstDay; day < firstDay + days && !signal.aborted; day += 1) {
    for (const kind of ['messages', 'deliveries'] as const) {
      await collections.create(kind, day, { isSharded: false });
    }
    log(`Filling ${dayName(day)} with ${perDay} deliveries`);
    ids.push(...(await fillDay({ db, owner, signal }, day, perDay)));
  }
  return ids;
}

async function fillDay(
  { db, owner, signal }: Omit<FillDeps, 'log'>,
  day: number,
  perDay: number,
): Promise<string[]> {
  const makeSample = sampleMaker(owner, day, perDay);
  const into = (kind: DayKind): mongo.Collection =>
    db.client.db(dayDatabaseName(db.databaseName, kind)).collection(dayName(day));
  const buildIndexes = await Promise.all([into('messages'), into('deliveries')].map(dropIndexes));
  const kept: string[] = [];
  const keepEvery = Math.ceil(perDay / SAMPLES_PER_DAY);
  for (let from = 0; from < perDay && !signal.aborted; from += BATCH) {
    const count = Math.min(BATCH, perDay - from);
    const samples = Array.from({ length: count }, (_, n) => makeSample(from + n));
    await Promise.all([
      into('messages').insertMany(samples.map(({ message }) => message) as never, FAST),
      into('deliveries').insertMany(samples.map(({ delivery }) => delivery) as never, FAST),
    ]);
    for (let n = 0; n < count; n += 1) {
      if ((from + n) % keepEvery === 0) kept.push(requiredAt(samples, n, 'sample').message._id);
    }
  }
  for (const build of buildIndexes) await build();
  return kept;
}

/** Returns a function that builds them again: for millions of documents, that is faster than to keep them up to date. */
async function dropIndexes(documents: mongo.Collection): Promise<() => Promise<void>> {
  const indexes = (await documents.indexes()).filter(({ name }) => name !== '_id_');
  await documents.dropIndexes();
  return async () => {
    await documents.createIndexes(indexes);
  };
}

/** Returns a function that makes the n-th sample of the day, at a time that grows with n. */
function sampleMaker({ companyId, appId, webhookIds }: HistoryOwner, day: number, perDay: number) {
  let nowMs = 0;
  const makeId = createIdFactory({ nowMs: () => nowMs, randomBytes });
  return (n: number) => {
    nowMs = Math.floor((day + n / perDay) * DAY_MS);
    const webhookId = requiredAt(webhookIds, n % webhookIds.length, 'webhook');
    return sampleDocuments(
      { companyId, appId, webhookId },
      {
        messageId: makeId('msg'),
        createdAt: new Date(nowMs),
        eventType: n % RARE_EVERY === 0 ? RARE_EVENT_TYPE : 'order.paid',
        status: n % EXHAUSTED_EVERY === 0 ? 'exhausted' : 'delivered',
      },
    );
  };
}
