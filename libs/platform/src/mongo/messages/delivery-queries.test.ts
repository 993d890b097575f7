import { expect, test } from '@jest/globals';
import { DAY_MS, firstIdAt } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { createDailyCollection } from '../days/daily-collection.ts';
import type { Days } from '../days/days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createStuckDeliveries } from './delivery-queries.ts';

const NOON = Date.UTC(2026, 10, 24, 12);
const LIMIT = 200;

/** Days that all have as many overdue deliveries as a page takes. `whole` counts those that are read whole. */
function openOverdue() {
  const read = { whole: 0 };
  const collectionOf = (name: string): object => {
    const all = Array.from({ length: LIMIT }, (_, n) => overdueOf(Date.parse(name) + n));
    return {
      find({ _id }: { _id?: { $in?: string[] } }) {
        const wanted = _id?.$in;
        let found = wanted ? all.filter((each) => wanted.includes(each._id)) : all;
        const cursor = {
          sort: () => cursor,
          limit(count: number) {
            found = found.slice(0, count);
            return cursor;
          },
          project(fields: object) {
            if ('attempts' in fields) read.whole += found.length;
            return cursor;
          },
          toArray: () => Promise.resolve(found),
        };
        return cursor;
      },
    };
  };
  const deliveries = createDailyCollection<DeliveryDocument>({
    days: { collection: collectionOf } as unknown as mongo.Db,
    layout: () => ({ beginMs: 0, retentionMs: 30 * DAY_MS }),
    nowMs: () => NOON,
    earlierMs: () => NOON,
  });
  const stuck = createStuckDeliveries({ days: { deliveries } as Days });
  return { stuck, read };
}

function overdueOf(ms: number) {
  return {
    _id: `${firstIdAt('dlv', ms)}${'0'.repeat(16)}`,
    nextAttemptAt: new Date(ms),
    attempts: [],
    createdAt: new Date(ms),
    updatedAt: new Date(ms),
  };
}

test('a page of overdue deliveries reads no more of them whole than it has', async () => {
  const { stuck, read } = openOverdue();
  const found = await stuck.findOverdue(NOON, LIMIT);
  expect(found).toHaveLength(LIMIT);
  expect(read.whole).toBe(LIMIT);
  const times = found.map(({ nextAttemptAtMs }) => nextAttemptAtMs ?? 0);
  expect(times).toEqual([...times].sort((a, b) => a - b));
});
