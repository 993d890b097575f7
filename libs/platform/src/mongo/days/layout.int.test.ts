import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import {
  openScratchDays,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createIndexes } from '../create-indexes.ts';
import { createDayCollections, daysToHave, firstBeginMs } from './day-collections.ts';
import { DAY_KINDS } from './days.ts';
import { readLayout } from './layout.ts';

let database: ScratchDatabase;
let begunMs: number;

beforeAll(async () => {
  begunMs = firstBeginMs(Date.now());
  database = await openScratchDays();
});

afterAll(() => database.drop());

const create = (days = 30) => createIndexes(database.db, { days, auditDays: 400 });
const beginMs = async () => (await readLayout(database.db))?.beginMs;

it('create-indexes gives a fresh installation the collections of today and of the next three days', async () => {
  expect(await beginMs()).toBe(begunMs);
  const days = createDayCollections(database.db);
  const nowMs = await days.nowMs();
  for (const kind of DAY_KINDS) {
    expect(await days.list(kind)).toEqual(daysToHave(nowMs));
    const today = database.db.days[kind].of(firstIdAt('msg', nowMs));
    expect(today.dbName).toBe(`${database.db.databaseName}_${kind}`);
    expect(await today.indexes()).toHaveLength(kind === 'messages' ? 5 : 4);
  }
});

it('create-indexes changes nothing but the retention when it is repeated', async () => {
  await collection(database.db, 'layout').updateOne({}, { $set: { beginAt: new Date(1) } });
  await create(7);
  expect(await readLayout(database.db)).toEqual({
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
