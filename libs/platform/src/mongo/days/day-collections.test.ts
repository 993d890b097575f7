import { expect, test } from '@jest/globals';
import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { createDayCollections, daysToHave } from './day-collections.ts';

const DAY = dayNumberOf(Date.UTC(2026, 10, 24));
const NAME = '2026-11-24';
const ID = { name: '_id_', key: { _id: 1 } };
const HASHED = { name: '_id_hashed', key: { _id: 'hashed' } };
const BY_KEY = { companyId: 1, 'idempotency.key': 1 };

interface Found {
  indexes?: object[];
  isEmpty?: boolean;
}

/** A database that notes what it is asked for, and has a collection of the day if `found` is given. */
function openNoted(found?: Found) {
  const noted: unknown[] = [];
  const indexes: object[] = [ID, ...(found?.indexes ?? [])];
  const open = (databaseName: string): object => ({
    databaseName,
    createCollection(name: string) {
      noted.push(`create ${databaseName}.${name}`);
      const exists = Object.assign(new Error('exists'), { code: 48 });
      return found ? Promise.reject(exists) : Promise.resolve();
    },
    command(command: object) {
      noted.push(command);
      indexes.push(HASHED);
      return Promise.resolve({});
    },
    collection: (name: string) => ({
      findOne: () => Promise.resolve(found?.isEmpty === false ? {} : null),
      indexes: () => Promise.resolve(indexes),
      createIndexes(wanted: { key: object; unique?: boolean }[]) {
        const unique = wanted.filter((index) => index.unique === true);
        noted.push(`index ${name}: ${wanted.length}, ${unique.length} of them unique`);
        return Promise.resolve();
      },
    }),
  });
  const db = { ...open('posthorn'), client: { db: open } } as unknown as mongo.Db;
  return { days: createDayCollections(db), noted };
}

const CREATED = `create posthorn_messages.${NAME}`;
const indexed = (unique: number) => `index ${NAME}: 10, ${unique} of them unique`;
const spread = (database: string) => ({
  shardCollection: `${database}.${NAME}`,
  key: { _id: 'hashed' },
});

test('a day has a collection and its indexes', async () => {
  const { days, noted } = openNoted();
  await days.create('messages', DAY, { isSharded: false });
  expect(noted).toEqual([CREATED, indexed(1)]);
});

test('a day of a sharded cluster is spread by its hashed ids before anything is in it', async () => {
  const { days, noted } = openNoted();
  await days.create('messages', DAY, { isSharded: true });
  await days.create('deliveries', DAY, { isSharded: true });
  await days.create('idempotencyKeys', DAY, { isSharded: true });
  expect(noted).toEqual([
    CREATED,
    spread('posthorn_messages'),
    indexed(0),
    `create posthorn_deliveries.${NAME}`,
    spread('posthorn_deliveries'),
    `index ${NAME}: 10, 0 of them unique`,
    `create posthorn_idempotencyKeys.${NAME}`,
    spread('posthorn_idempotencyKeys'),
  ]);
});

test.each<[string, Found, number]>([
  ['that a write has made, has documents and', { isEmpty: false }, 1],
  [
    'from before the cluster was sharded, has documents and',
    { isEmpty: false, indexes: [{ key: BY_KEY, unique: true }] },
    1,
  ],
  [
    'from before the cluster was sharded, has a unique index and',
    { indexes: [{ key: BY_KEY, unique: true }] },
    1,
  ],
  ['that is spread and has documents', { isEmpty: false, indexes: [HASHED] }, 0],
])('a day %s stays where it is', async (_what, found, unique) => {
  const { days, noted } = openNoted(found);
  await days.create('messages', DAY, { isSharded: true });
  expect(noted).toEqual([CREATED, indexed(unique)]);
});

test('a day is spread that was made and not spread yet', async () => {
  const { days, noted } = openNoted({});
  await days.create('messages', DAY, { isSharded: true });
  expect(noted).toEqual([CREATED, spread('posthorn_messages'), indexed(0)]);
});

test.each([
  ['and has its indexes', [HASHED, { key: BY_KEY }]],
  ['and has none of its indexes', [HASHED]],
  ['and lost its shards in a copy of the database', [{ key: BY_KEY }]],
])(
  'a day keeps what it is when new ones are not spread: one that is spread %s',
  async (_, indexes) => {
    const { days, noted } = openNoted({ isEmpty: false, indexes });
    await days.create('messages', DAY, { isSharded: false });
    expect(noted).toEqual([CREATED, indexed(0)]);
  },
);

const NOON = 100.5 * DAY_MS;

test('today and the three days after it have a collection', () => {
  expect(daysToHave(NOON)).toEqual([100, 101, 102, 103]);
});
