import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DAY_MS, dayNumberOf, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDays,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { createIdempotencyKeys, createKeyHolders } from './idempotency-keys.ts';
import { createMessageStore, toDocument } from './messages.ts';

const MIDNIGHT = dayNumberOf(Date.now()) * DAY_MS;
const MINUTE_MS = 60_000;

let database: ScratchDatabase;

beforeAll(async () => {
  database = await openScratchDays();
});

afterAll(() => database.drop());

const keyed = (ms: number, key: string): Message =>
  sampleMessage(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, {
    idempotency: { key, bodyHash: 'hash', answer: 'sealed' },
  });

const holders = () => createKeyHolders(database.db);
const insert = (...batch: Message[]) => createMessageStore(database.db).insertAll(batch);

it('a key of the last millisecond of a day is not free on the next day', async () => {
  const last = keyed(MIDNIGHT - 1, 'midnight');
  expect(await insert(last)).toEqual(['stored']);
  expect(await insert(keyed(MIDNIGHT, 'midnight'))).toEqual(['repeated']);
  const found = await holders().findKeyHolder('comp_a', 'midnight');
  expect(found).toMatchObject({ id: last.id, claimedFor: last.id });
});

it('a batch that crosses midnight stores the first message of a key and no other', async () => {
  const batch = [MIDNIGHT - 2, MIDNIGHT - 1, MIDNIGHT].map((ms) => keyed(ms, 'batch'));
  expect(await insert(...batch, keyed(MIDNIGHT + 1, 'other'))).toEqual([
    ...['stored', 'repeated', 'repeated', 'stored'],
  ]);
});

it('a claim without a message shows since when it is, until it is released', async () => {
  const crashed = keyed(MIDNIGHT - 3, 'crashed');
  await createIdempotencyKeys(database.db).claim([crashed]);
  const found = await holders().findKeyHolder('comp_a', 'crashed');
  expect(found).toEqual({ kind: 'claimed', claimedFor: crashed.id, ageMs: expect.any(Number) });
  expect(await insert(keyed(MIDNIGHT + 3, 'crashed'))).toEqual(['repeated']);
  if (!found) throw new Error('the key is claimed');
  await holders().releaseKey('comp_a', 'crashed', { ...found, claimedFor: 'msg_other' });
  expect(await insert(keyed(MIDNIGHT + 4, 'crashed'))).toEqual(['repeated']);
  await holders().releaseKey('comp_a', 'crashed', found);
  expect(await insert(keyed(MIDNIGHT + 5, 'crashed'))).toEqual(['stored']);
});

it.each([
  ['behind', -5 * MINUTE_MS],
  ['ahead', 5 * MINUTE_MS],
])('a claim has just been made also when the clock of its gateway is %s', async (clock, offMs) => {
  const [first, other] = [Date.now() + offMs, Date.now()].map((ms) => keyed(ms, clock));
  if (!first || !other) throw new Error('there are two messages');
  const keys = createIdempotencyKeys(database.db);
  expect(await keys.claim([first])).toEqual(new Set());
  const isNew = (found: object | null): boolean => {
    const { ageMs } = found as { ageMs: number };
    return ageMs >= 0 && ageMs < MINUTE_MS;
  };
  expect(isNew(await holders().findKeyHolder('comp_a', clock))).toBe(true);
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  const found = await holders().findKeyHolder('comp_a', clock);
  expect([found, isNew(found)]).toMatchObject([{ id: first.id }, true]);
  expect(await keys.claim([other, first])).toEqual(new Set([other]));
});

it('a message that is stored after its claim was taken away keeps its key', async () => {
  const late = keyed(MIDNIGHT + 6, 'late');
  await createIdempotencyKeys(database.db).claim([keyed(MIDNIGHT + 7, 'late')]);
  await database.db.days.messages.of(late.id).insertOne(toDocument(late));
  const found = await holders().findKeyHolder('comp_a', 'late');
  expect(found).toMatchObject({ id: late.id, claimedFor: keyed(MIDNIGHT + 7, 'late').id });
  if (!found) throw new Error('the key has a holder');
  await holders().releaseKey('comp_a', 'late', found);
  expect(await insert(keyed(MIDNIGHT + 8, 'late'))).toEqual(['stored']);
});
