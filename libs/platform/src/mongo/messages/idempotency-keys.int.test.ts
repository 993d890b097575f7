import { expect, it } from '@jest/globals';
import { DAY_MS, dayNumberOf, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDays } from '../../../../../test/support/stores/scratch-database.ts';
import {
  claimSpanAt,
  createClaim,
  createKeyClaims,
  createKeyHolders,
  type HeldKey,
  KEPT_MS,
} from './idempotency-keys.ts';
import { createMessageStore, toDocument } from './messages.ts';

const MIDNIGHT = dayNumberOf(Date.now()) * DAY_MS;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const database = duringTests(openScratchDays, ({ drop }) => drop());

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
const findKeyHolder = async (key: string) =>
  (await holders().findKeyHolders('comp_a', [key])).get(key) ?? null;
const releaseKey = (key: string, found: HeldKey['found']) =>
  holders().releaseKeys('comp_a', [{ key, found }]);
const insert = (...batch: Message[]) => createMessageStore(database.db).insertAll(batch);

it('a key of the last millisecond of a day is not free on the next day', async () => {
  const last = keyed(MIDNIGHT - 1, 'midnight');
  expect(await insert(last)).toEqual(['stored']);
  expect(await insert(keyed(MIDNIGHT, 'midnight'))).toEqual(['repeated']);
  const found = await findKeyHolder('midnight');
  expect(found).toMatchObject({ id: last.id, claimedFor: last.id });
});

it('a batch that crosses midnight stores the first message of a key and no other', async () => {
  const batch = [MIDNIGHT - 2, MIDNIGHT - 1, MIDNIGHT].map((ms) => keyed(ms, 'batch'));
  expect(await insert(...batch, keyed(MIDNIGHT + 1, 'other'))).toEqual([
    ...['stored', 'repeated', 'repeated', 'stored'],
  ]);
});

it('a claim of an ingested record shows its place, which is not stored in the message', async () => {
  const ingestedFrom = 'kafka/c/orders/0/17/1700000000000';
  const of = (ms: number): Message => {
    const message = keyed(ms, 'ingested');
    return {
      ...message,
      idempotency: { key: 'ingested', bodyHash: 'h', answer: '', ingestedFrom },
    };
  };
  const crashed = of(MIDNIGHT - 25);
  await claim([crashed]);
  const found = await findKeyHolder('ingested');
  expect(found).toMatchObject({ kind: 'claimed', claimedFor: crashed.id, ingestedFrom });
  if (found) await releaseKey('ingested', found);
  const next = of(MIDNIGHT + 25);
  expect(await insert(next)).toEqual(['stored']);
  expect(await findKeyHolder('ingested')).toMatchObject({ kind: 'holder', id: next.id });
  // An insert of the former owner that comes late, in the same day.
  expect(await insert(of(MIDNIGHT + 24))).toEqual(['repeated']);
  expect(toDocument(next).idempotency).toEqual({ key: 'ingested', bodyHash: 'h', answer: '' });
});

it('a claim without a message shows since when it is, until it is released', async () => {
  const crashed = keyed(MIDNIGHT - 3, 'crashed');
  await claim([crashed]);
  const found = await findKeyHolder('crashed');
  expect(found).toEqual({ kind: 'claimed', claimedFor: crashed.id, ageMs: expect.any(Number) });
  expect(await insert(keyed(MIDNIGHT + 3, 'crashed'))).toEqual(['repeated']);
  if (!found) throw new Error('the key is claimed');
  await releaseKey('crashed', { ...found, claimedFor: 'msg_other' });
  expect(await insert(keyed(MIDNIGHT + 4, 'crashed'))).toEqual(['repeated']);
  await releaseKey('crashed', found);
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
  expect(isNew(await findKeyHolder(clock))).toBe(true);
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  const found = await findKeyHolder(clock);
  expect([found, isNew(found)]).toMatchObject([{ id: first.id }, true]);
  expect(await claim([other, first])).toEqual(new Set([other]));
});

it('a message that is stored after its claim was taken away keeps its key', async () => {
  const late = keyed(MIDNIGHT + 6, 'late');
  await claim([keyed(MIDNIGHT + 7, 'late')]);
  await database.db.days.messages.of(late.id).insertOne(toDocument(late));
  const found = await findKeyHolder('late');
  expect(found).toMatchObject({ id: late.id, claimedFor: keyed(MIDNIGHT + 7, 'late').id });
  if (!found) throw new Error('the key has a holder');
  await releaseKey('late', found);
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
  const found = await findKeyHolder('before');
  expect(found).toMatchObject({ kind: 'holder', id: first.id, claimedFor: first.id });
  const today = database.db.days.idempotencyKeys.of(dayNumberOf(Date.now()));
  expect(await today.countDocuments({ messageId: repeat.id })).toBe(0);
});

it('a key of the day before is free when its 24 hours are over', async () => {
  const [first, next] = [keyed(MIDNIGHT - 11, 'over'), keyed(MIDNIGHT + 11, 'over')];
  await database.db.days.messages.of(first.id).insertOne(toDocument(first));
  await claimYesterday(first, KEPT_MS);
  expect(await insert(next)).toEqual(['stored']);
  expect(await findKeyHolder('over')).toMatchObject({ id: next.id });
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
    expect(await findKeyHolder(each.idempotency?.key ?? '')).toBeNull();
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

it('the keys of a batch of 1,000 are claimed in one write and looked up in a few reads', async () => {
  const batchOf = (offset: number, from: number) =>
    Array.from({ length: 1_000 }, (_, n) => {
      const id = `${firstIdAt('msg', MIDNIGHT + offset)}${String(n).padStart(16, '0')}`;
      const idempotency = { key: `many#${from + n}`, bodyHash: `hash ${from + n}`, answer: '' };
      return sampleMessage(id, { idempotency, targets: ['wh_1', 'wh_2'] });
    });
  const first = batchOf(1_000, 0);
  expect(await insert(...first)).toEqual(Array(1_000).fill('stored'));
  const repeat = batchOf(2_000, 500);
  expect(await insert(...repeat)).toEqual([
    ...Array<string>(500).fill('repeated'),
    ...Array<string>(500).fill('stored'),
  ]);
  const keys = repeat.map(({ idempotency }) => idempotency?.key ?? '');
  const found = await holders().findKeyHolders('comp_a', [...keys, 'many#none']);
  expect(keys.map((key) => found.get(key))).toMatchObject(
    [...first.slice(500), ...repeat.slice(500)].map(({ id, idempotency }) => {
      const { bodyHash } = idempotency ?? {};
      return { kind: 'holder', id, bodyHash, claimedFor: id, targetCount: 2 };
    }),
  );
  expect(found.size).toBe(1_000);
  expect((await holders().findKeyHolders('comp_b', keys)).size).toBe(0);
});

it('a claim counts beside an older one, although an expired message has its key', async () => {
  const [expired, running] = [
    keyed(MIDNIGHT - 13, 'again'),
    keyed(MIDNIGHT + 2 * HOUR_MS, 'again'),
  ];
  const old = { ...expired, createdAtMs: Date.now() - KEPT_MS - MINUTE_MS };
  await database.db.days.messages.of(old.id).insertOne(toDocument(old));
  await claim([running, keyed(MIDNIGHT - 14, 'older')]);
  const counting = { kind: 'claimed', claimedFor: running.id };
  expect(await findKeyHolder('again')).toMatchObject(counting);
  const found = await holders().findKeyHolders('comp_a', ['again', 'older']);
  expect(found.get('again')).toMatchObject(counting);
  expect(found.get('older')).toMatchObject({ kind: 'claimed' });
});
