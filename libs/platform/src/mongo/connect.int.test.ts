import { afterEach, expect, jest, test } from '@jest/globals';
import { DAY_MS, firstIdAt } from '@posthorn/domain/ids.ts';
import mongoose from 'mongoose';
import { Registry } from 'prom-client';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { openScratchDays } from '../../../../test/support/stores/scratch-database.ts';
import { watchClient } from './connect.ts';
import { databaseClockMs } from './database-time.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

const HOUR_MS = 3_600_000;

test.each([HOUR_MS, -HOUR_MS])(
  'A process whose clock is ahead by %i ms keeps documents by the time of the database',
  async (aheadMs) => {
    const rightMs = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => rightMs() + aheadMs);
    const { db, drop } = await openScratchDays();
    try {
      const oldestMs = (await databaseClockMs(db)) - 30 * DAY_MS;
      const isKept = (ms: number): boolean =>
        db.days.messages.isKept(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`);
      expect([isKept(oldestMs - HOUR_MS / 2), isKept(oldestMs + HOUR_MS / 2)]).toEqual([
        false,
        true,
      ]);
    } finally {
      await drop();
    }
  },
);

test('An operation of the real driver that finds no server counts as an error', async () => {
  const registry = new Registry();
  const { MONGODB_URL } = createNamespace();
  const client = new mongoose.mongo.MongoClient(MONGODB_URL, { serverSelectionTimeoutMS: 2_000 });
  await client.connect();
  try {
    watchClient(registry, client, 20);
    // No server has this tag.
    const readPreference = new mongoose.mongo.ReadPreference('secondary', [{ nobody: 'has' }]);
    const find = client.db().collection('none').findOne({}, { readPreference });
    await expect(find).rejects.toThrow();
    const errors = 'posthorn_store_errors_total{store="mongodb",operation="selectServer"} 1';
    expect(await registry.metrics()).toContain(errors);
  } finally {
    await client.close();
  }
});
