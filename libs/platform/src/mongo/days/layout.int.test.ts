import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { dayNumberOf, firstIdAt } from '@posthorn/domain/ids.ts';
import {
  openScratchDays,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createIndexes } from '../create-indexes.ts';
import { databaseClockMs } from '../database-time.ts';
import { createDayCollections, daysToHave, firstBeginMs } from './day-collections.ts';
import { DAY_KINDS, type DayKind } from './days.ts';
import { readLayout } from './layout.ts';

let database: ScratchDatabase;
let begunMs: number;

beforeAll(async () => {
  begunMs = firstBeginMs(Date.now());
  database = await openScratchDays();
});

afterAll(() => database.drop());

const create = (days = 30) => createIndexes(database.db, { days, auditDays: 400 });
const todayOf = async (kind: DayKind, nowMs: number) => {
  const { idempotencyKeys, ...days } = database.db.days;
  const today =
    kind === 'idempotencyKeys'
      ? idempotencyKeys.of(dayNumberOf(nowMs))
      : days[kind].of(firstIdAt('msg', nowMs));
  return { dbName: today.dbName, indexes: await today.indexes() };
};
const beginMs = async () => (await readLayout(database.db))?.beginMs;

it('create-indexes gives a fresh installation the collections of today and of the next three days', async () => {
  expect(await beginMs()).toBe(begunMs);
  const days = createDayCollections(database.db);
  const nowMs = await databaseClockMs(database.db);
  for (const kind of DAY_KINDS) {
    expect(await days.list(kind)).toEqual(daysToHave(nowMs));
    const { dbName, indexes } = await todayOf(kind, nowMs);
    expect(dbName).toBe(`${database.db.databaseName}_${kind}`);
    expect(indexes).toHaveLength({ messages: 11, deliveries: 10, idempotencyKeys: 1 }[kind]);
  }
});

it('create-indexes changes nothing but the retention when it is repeated', async () => {
  await collection(database.db, 'layout').updateOne({}, { $set: { beginAt: new Date(1) } });
  await create(7);
  expect(await readLayout(database.db)).toMatchObject({
    beginMs: 1,
    retentionMs: 7 * 86_400_000,
    isSharded: false,
  });
});

it('create-indexes does the same when it was killed before the layout was stored', async () => {
  const days = createDayCollections(database.db);
  const [today = 0] = await days.list('deliveries');
  await days.drop('deliveries', today);
  await collection(database.db, 'layout').deleteMany({});
  await create();
  expect(await beginMs()).toBe(begunMs);
  expect(await days.list('deliveries')).toContain(today);
});
