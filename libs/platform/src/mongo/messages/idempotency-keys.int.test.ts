import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DAY_MS, dayNumberOf, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDays,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import {
  claimSpanAt,
  createClaim,
  createKeyClaims,
  createKeyHolders,
  KEPT_MS,
} from './idempotency-keys.ts';
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

/** Claims the keys as a gateway does whose first reading of the database's clock was off by so much. */
const claim = (keys: Message[], offMs = 0) => {
  const readings = [Date.now() + offMs];
  return createClaim({
    claims: createKeyClaims(database.db),
    databaseMs: () => Promise.resolve(readings.pop() ?? Date.now()),
    monotonicMs: () => 0,
  })(keys);
};
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
  await claim([crashed]);
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
  expect(await claim([first])).toEqual(new Set());
  const isNew = (found: object | null): boolean => {
    const { ageMs } = found as { ageMs: number };
    return ageMs >= 0 && ageMs < MINUTE_MS;
  };
  expect(isNew(await holders().findKeyHolder('comp_a', clock))).toBe(true);
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  const found = await holders().findKeyHolder('comp_a', clock);
  expect([found, isNew(found)]).toMatchObject([{ id: first.id }, true]);
  expect(await claim([other, first])).toEqual(new Set([other]));
});

it('a message that is stored after its claim was taken away keeps its key', async () => {
  const late = keyed(MIDNIGHT + 6, 'late');
  await claim([keyed(MIDNIGHT + 7, 'late')]);
  await database.db.days.messages.of(late.id).insertOne(toDocument(late));
  const found = await holders().findKeyHolder('comp_a', 'late');
  expect(found).toMatchObject({ id: late.id, claimedFor: keyed(MIDNIGHT + 7, 'late').id });
  if (!found) throw new Error('the key has a holder');
  await holders().releaseKey('comp_a', 'late', found);
  expect(await insert(keyed(MIDNIGHT + 8, 'late'))).toEqual(['stored']);
});

/** Stores a claim of the day before, as old as that. */
async function claimYesterday(message: Message, ageMs: number): Promise<void> {
  const { companyId, id: messageId, idempotency } = message;
  const _id = `${companyId}/${idempotency?.key ?? ''}`;
  const createdAt = new Date(Date.now() - ageMs);
  const yesterday = database.db.days.idempotencyKeys.of(dayNumberOf(Date.now()) - 1);
  await yesterday.insertOne({ _id, companyId, messageId, createdAt });
}

it('a key that was claimed on the day before is taken for 24 hours, and its message is found', async () => {
  const [first, repeat] = [keyed(MIDNIGHT - 9, 'before'), keyed(MIDNIGHT + 9, 'before')];
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  await claimYesterday(first, KEPT_MS - MINUTE_MS);
  expect(await insert(repeat, keyed(MIDNIGHT + 10, 'new'))).toEqual(['repeated', 'stored']);
  const found = await holders().findKeyHolder('comp_a', 'before');
  expect(found).toMatchObject({ kind: 'holder', id: first.id, claimedFor: first.id });
  const today = database.db.days.idempotencyKeys.of(dayNumberOf(Date.now()));
  expect(await today.countDocuments({ messageId: repeat.id })).toBe(0);
});

it('a key of the day before is free when its 24 hours are over', async () => {
  const [first, next] = [keyed(MIDNIGHT - 11, 'over'), keyed(MIDNIGHT + 11, 'over')];
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  await claimYesterday(first, KEPT_MS);
  expect(await insert(next)).toEqual(['stored']);
  expect(await holders().findKeyHolder('comp_a', 'over')).toMatchObject({ id: next.id });
});

it.each([
  ['a day behind', -DAY_MS],
  ['a day ahead', DAY_MS],
  ['right', 0],
])(
  "a key is claimed in the day of MongoDB's clock, by a gateway that is %s",
  async (what, offMs) => {
    const [first, other] = [20, 21].map((n) => keyed(MIDNIGHT + n * what.length, what));
    if (!first || !other) throw new Error('there are two messages');
    expect(await claim([first], offMs)).toEqual(new Set());
    const today = database.db.days.idempotencyKeys.of(dayNumberOf(Date.now()));
    expect(await today.countDocuments({ messageId: first.id })).toBe(1);
    for (const otherMs of [-DAY_MS, 0, DAY_MS]) {
      expect(await claim([other], otherMs)).toEqual(new Set([other]));
    }
  },
);

it('a claim out of its part of the day leaves nothing, with the others of its batch', async () => {
  const claims = createKeyClaims(database.db);
  const batch = [14, 15].map((n) => keyed(MIDNIGHT + n, `outside ${n}`));
  const span = { ...claimSpanAt(Date.now()), beforeMs: Date.now() - MINUTE_MS };
  expect(await claims.write(span, batch)).toBeNull();
  for (const each of batch) {
    expect(await holders().findKeyHolder('comp_a', each.idempotency?.key ?? '')).toBeNull();
  }
});

it('a batch of keyed messages costs three commands, also for fifty', async () => {
  const { insertAll } = createMessageStore(database.db);
  await insertAll([keyed(MIDNIGHT + 30, 'clock is read')]);
  const commands: string[] = [];
  const onCommand = ({ commandName }: { commandName: string }) => commands.push(commandName);
  database.db.client.on('commandStarted', onCommand);
  await insertAll(Array.from({ length: 50 }, (_, n) => keyed(MIDNIGHT + 31 + n, `cost ${n}`)));
  database.db.client.off('commandStarted', onCommand);
  // In the last hour of a day it looks into the next one too.
  const [update, ...others] = commands;
  expect([update, others.at(-1), new Set(others.slice(0, -1))]).toEqual([
    ...['update', 'insert', new Set(['find'])],
  ]);
  expect(commands.length).toBeLessThan(5);
});
