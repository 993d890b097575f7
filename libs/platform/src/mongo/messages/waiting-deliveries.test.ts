import { beforeEach, expect, test } from '@jest/globals';
import { DAY_MS, dayNumberOf, dayNumberOfName } from '@posthorn/domain/ids.ts';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { createDailyCollection } from '../days/daily-collection.ts';
import type { Database } from '../days/days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createWaitingDeliveries } from './waiting-deliveries.ts';

const NOW_MS = 1_700_000_000_000;
const DAYS = 30;
const SECOND_MS = 1_000;
/** Tomorrow's too: the clock that made an id may be ahead. */
const ALL = new Set(Array.from({ length: DAYS + 1 }, (_, n) => n - 1));

/** By how many days ago: the times for which deliveries of that day wait. */
let dueMs: Map<number, number[]>;
/** The days that were read, by how many days ago. */
let read: number[];
/** Called with each read. */
let onRead: () => void;

beforeEach(() => {
  dueMs = new Map();
  read = [];
  onRead = () => undefined;
});

type Due = Record<'nextAttemptAt' | 'expiresAt', { $lte: Date } | undefined>;

/** A collection as far as it is read for what is due. */
function dayOf(ago: number): object {
  return {
    collectionName: `day ${ago}`,
    find({ nextAttemptAt, expiresAt }: Due) {
      const latestMs = Number((nextAttemptAt ?? expiresAt)?.$lte);
      read.push(ago);
      const all = dueMs.get(ago) ?? [];
      const found = all.filter((ms) => ms <= latestMs).map((ms) => documentOf(ago, ms));
      onRead();
      const cursor = {
        sort: () => cursor,
        hint: () => cursor,
        limit: () => cursor,
        project: () => cursor,
        toArray: () => Promise.resolve(found),
      };
      return cursor;
    },
  };
}

const documentOf = (ago: number, ms: number) => ({
  _id: `dlv_${ago}`,
  updatedAt: new Date(NOW_MS),
  createdAt: new Date(NOW_MS - ago * DAY_MS),
  nextAttemptAt: new Date(ms),
});

const collection = (name: string): object =>
  dayOf(dayNumberOf(NOW_MS) - (dayNumberOfName(name) ?? NaN));
const deliveries = createDailyCollection<DeliveryDocument>({
  days: { collection } as unknown as mongo.Db,
  layout: () => ({ beginMs: 0, retentionMs: (DAYS - 1) * DAY_MS }),
  nowMs: () => NOW_MS,
  earlierMs: () => NOW_MS,
});

function open() {
  const waiting = createWaitingDeliveries({ days: { deliveries } } as Database);
  const idsAt = async (ms: number): Promise<string[]> =>
    (await waiting.dueAt(ms, 10)).map(({ id }) => id);
  return { ...waiting, idsAt };
}

test('reads the day of now each time, and the others once a minute', async () => {
  const { idsAt } = open();
  await idsAt(NOW_MS);
  expect(new Set(read)).toEqual(ALL);
  read = [];
  await idsAt(NOW_MS + SECOND_MS);
  expect(read).toEqual([0]);
  await idsAt(NOW_MS + 60 * SECOND_MS);
  expect(new Set(read)).toEqual(ALL);
});

test.each([
  [-17, [1, 0]],
  [-16, [0]],
  [1, [0, -1]],
])(
  'reads the days of six hours before and an hour after: at 22:13 and %i hours %j',
  async (hours, days) => {
    const { idsAt } = open();
    await idsAt(NOW_MS + hours * HOUR_MS);
    read = [];
    await idsAt(NOW_MS + hours * HOUR_MS + SECOND_MS);
    expect(read).toEqual(days);
  },
);

test('looks for what expires on hold in the day of now each time, and in the others once in ten seconds', async () => {
  const { expiredAt } = open();
  dueMs.set(7, [NOW_MS + 9 * SECOND_MS]);
  expect(await expiredAt(NOW_MS, 10)).toEqual([]);
  read = [];
  expect(await expiredAt(NOW_MS + 9 * SECOND_MS, 10)).toHaveLength(1);
  expect(read).toEqual([7, 0]);
  await expiredAt(NOW_MS + 10 * SECOND_MS, 10);
  expect(new Set(read)).toEqual(ALL);
});

test('finds a delivery of last week that is due soon once it is announced', async () => {
  const { idsAt, lookAtAllDays } = open();
  expect(await idsAt(NOW_MS)).toEqual([]);
  dueMs.set(7, [NOW_MS + 2 * SECOND_MS]);
  lookAtAllDays();
  expect(await idsAt(NOW_MS + SECOND_MS)).toEqual([]);
  read = [];
  expect(await idsAt(NOW_MS + 2 * SECOND_MS)).toEqual(['dlv_7']);
  expect(read).toEqual([7, 0]);
});

test('looks again after an announcement that came during a look, and after a look that failed', async () => {
  const { idsAt, lookAtAllDays } = open();
  onRead = () => {
    onRead = () => undefined;
    dueMs.set(28, [NOW_MS]);
    lookAtAllDays();
  };
  expect(await idsAt(NOW_MS)).not.toContain('dlv_29');
  dueMs.set(29, [NOW_MS]);
  onRead = () => {
    throw new Error('MongoDB is away');
  };
  await expect(idsAt(NOW_MS + SECOND_MS)).rejects.toThrow('MongoDB is away');
  onRead = () => undefined;
  expect(await idsAt(NOW_MS + SECOND_MS)).toEqual(['dlv_29', 'dlv_28']);
});
