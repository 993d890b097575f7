import { expect, test } from '@jest/globals';
import { dayNumberOf } from '@posthorn/domain/ids/days.ts';
import type { mongo } from 'mongoose';
import { createDayCollections } from './day-collections.ts';

const DAY = dayNumberOf(Date.UTC(2026, 10, 24));

/** A database that notes what it is asked for. */
function openNoted() {
  const noted: unknown[] = [];
  const open = (databaseName: string): object => ({
    databaseName,
    createCollection(name: string) {
      noted.push(`create ${databaseName}.${name}`);
      return Promise.resolve();
    },
    command(command: object) {
      noted.push(command);
      return Promise.resolve({});
    },
    collection: (name: string) => ({
      createIndexes(indexes: { key: object; unique?: boolean }[]) {
        const unique = indexes.filter((index) => index.unique === true);
        noted.push(`index ${name}: ${indexes.length}, ${unique.length} of them unique`);
        return Promise.resolve();
      },
    }),
  });
  const db = { ...open('posthorn'), client: { db: open } } as unknown as mongo.Db;
  return { days: createDayCollections(db), noted };
}

test('a day has a collection and its indexes', async () => {
  const { days, noted } = openNoted();
  await days.create('messages', DAY, { isSharded: false });
  expect(noted).toEqual([
    'create posthorn_messages.2026-11-24',
    'index 2026-11-24: 4, 1 of them unique',
  ]);
});

test('a day of a sharded cluster is spread by its hashed ids before anything is in it', async () => {
  const { days, noted } = openNoted();
  await days.create('messages', DAY, { isSharded: true });
  await days.create('deliveries', DAY, { isSharded: true });
  const spread = (database: string) => ({
    shardCollection: `${database}.2026-11-24`,
    key: { _id: 'hashed' },
  });
  expect(noted).toEqual([
    'create posthorn_messages.2026-11-24',
    spread('posthorn_messages'),
    'index 2026-11-24: 4, 0 of them unique',
    'create posthorn_deliveries.2026-11-24',
    spread('posthorn_deliveries'),
    'index 2026-11-24: 3, 0 of them unique',
  ]);
});
