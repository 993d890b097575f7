import { beforeEach, expect, test } from '@jest/globals';
import { DAY_MS, dayNumberOf, dayNumberOfName } from '@posthorn/domain/ids.ts';
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

interface Due {
  nextAttemptAt: { $lte: Date };
}

/** A collection as far as the release at the time of messages reads it. */
function dayOf(ago: number): object {
  return {
    find({ nextAttemptAt: { $lte: latest } }: Due) {
      read.push(ago);
      const all = dueMs.get(ago) ?? [];
      const found = all.filter((ms) => ms <= latest.getTime()).map((ms) => documentOf(ago, ms));
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

test('reads yesterday and today each time, and the days before once a minute', async () => {
  const { idsAt } = open();
  await idsAt(NOW_MS);
  expect(new Set(read)).toEqual(ALL);
  read = [];
  await idsAt(NOW_MS + SECOND_MS);
  expect(read).toEqual([1, 0, -1]);
  await idsAt(NOW_MS + 60 * SECOND_MS);
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
  expect(read).toEqual([7, 1, 0, -1]);
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
