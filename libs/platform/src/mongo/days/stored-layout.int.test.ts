import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids/ids.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../documents/collections.ts';
import { toDocument } from '../messages/message-documents.ts';
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
  const aheadMs = Date.now() + 50 * MINUTE_MS;
  await storeMessageOf(aheadMs);
  expect(await beginDays(db)).toBe(aheadMs + 10 * MINUTE_MS);
});

it('days do not begin after a message whose gateway has a clock that is more than an hour ahead', async () => {
  const { db } = database;
  const begun = await readLayout(db);
  const farMs = Date.now() + 90 * MINUTE_MS;
  await storeMessageOf(farMs);
  expect(await beginDays(db)).toBe(begun?.beginMs);
  await collection(db, 'layout').updateOne({}, { $unset: { beginAt: '' } });
  await expect(beginDays(db)).rejects.toThrow(new Date(farMs).toISOString());
  expect((await readLayout(db))?.beginMs).toBe(Infinity);
});

async function storeMessageOf(ms: number): Promise<void> {
  const id = `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;
  await collection(database.db, 'messages').insertOne(toDocument(sampleMessage(id)));
}
