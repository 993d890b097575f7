import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids/ids.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../documents/collections.ts';
import { createMessageStore } from '../messages/messages.ts';
import { beginDays, readLayout } from './stored-layout.ts';

const MINUTE_MS = 60_000;
let database: ScratchDatabase;

beforeAll(async () => {
  database = await openScratchDatabase();
});

afterAll(() => database.drop());

it('days begin ten minutes after it was decided, and it is decided once', async () => {
  const { db } = database;
  const beganMs = Date.now();
  const beginMs = await beginDays(db);
  expect(beginMs - beganMs).toBeGreaterThan(9 * MINUTE_MS);
  expect(beginMs - Date.now()).toBeLessThan(11 * MINUTE_MS);
  expect(await beginDays(db)).toBe(beginMs);
  expect(await readLayout(db)).toEqual({
    beginMs,
    retentionMs: 30 * 1_440 * MINUTE_MS,
    isSharded: false,
  });
});

it('days begin after the newest message, also when its gateway has a clock that is ahead', async () => {
  const { db } = database;
  await collection(db, 'layout').updateOne({}, { $unset: { beginAt: '' } });
  const aheadMs = Date.now() + 60 * MINUTE_MS;
  const id = `${firstIdAt('msg', aheadMs)}${'0'.repeat(16)}`;
  await createMessageStore(db).insertAll([sampleMessage(id)]);
  expect(await beginDays(db)).toBe(aheadMs + 10 * MINUTE_MS);
});
