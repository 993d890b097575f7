import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { messageListContract } from '../../../../../test/support/contract/message-list-contract.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import type { Stored } from '../../../../../test/support/memory/memory-messages.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  openScratchDays,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createDeliveryQueries } from './delivery-queries.ts';
import type { DeliveryDocument } from '../documents.ts';
import type { KeyHolder } from './idempotency-keys.ts';
import { createMessageQueries, type MessageQueries } from './message-queries.ts';
import { createMessageStore, type MessageStore } from './messages.ts';

/** Recent, so that the database does not remove the messages. */
const START_MS = Date.now() - 60_000;

messageListContract(async (stored) => {
  const { db, drop } = await openScratchDatabase();
  await createMessageStore(db).insertAll(stored.map((each) => each.message));
  const known = stored.flatMap((each) => each.known);
  await collection(db, 'deliveries').insertMany(known.map(deliveryOf));
  return { messages: createMessageQueries(db), deliveries: createDeliveryQueries(db), close: drop };
});

function deliveryOf({ id, updatedAtMs, ...outline }: Stored['known'][number]): DeliveryDocument {
  return {
    _id: id,
    ...outline,
    companyId: 'comp_a',
    appId: null,
    reason: null,
    attempts: [],
    nextAttemptAt: null,
    createdAt: new Date(),
    updatedAt: new Date(updatedAtMs),
  };
}

const database = duringTests(openScratchDays, ({ drop }) => drop());
let store: MessageStore;
let queries: MessageQueries;

beforeAll(() => {
  store = createMessageStore(database.db);
  queries = createMessageQueries(database.db);
});

beforeEach(async () => {
  const { db } = database;
  for (const keys of db.days.idempotencyKeys.all()) await keys.deleteMany({});
  for (const documents of db.days.messages.within({})) await documents.deleteMany({});
});

/** The nth message; one for each millisecond. */
function message(n: number, overrides: Partial<Message> = {}): Message {
  return sampleMessage(`${firstIdAt('msg', START_MS + n)}${'0'.repeat(16)}`, overrides);
}

const keyed = (n: number, key: string, companyId = 'comp_a') =>
  message(n, { companyId, idempotency: { key, bodyHash: `body ${n}`, answer: `sealed ${n}` } });

const findKeyHolder = async (companyId: string, key: string) =>
  (await queries.findKeyHolders(companyId, [key])).get(key) ?? null;

const idOfHolder = async (companyId: string, key: string): Promise<unknown> => {
  const found = await findKeyHolder(companyId, key);
  return found?.kind === 'holder' ? found.id : found;
};

describe('an idempotency key', () => {
  it('belongs to the first message of a batch that has it, and does not affect the others', async () => {
    const batch = [keyed(1, 'k'), keyed(2, 'k'), message(3), keyed(4, 'l'), keyed(5, 'k')];
    expect(await store.insertAll(batch)).toEqual([
      ...['stored', 'repeated', 'stored', 'stored', 'repeated'],
    ]);
    expect(await idOfHolder('comp_a', 'k')).toBe(batch[0]?.id);
    expect(await queries.listOutlines('comp_a', {}, { messages: 9, targets: 9 })).toHaveLength(3);
  });

  it('shows its holder without the payload and the response, but with the size of all', async () => {
    const large = { ...keyed(1, 'k'), payload: 'x'.repeat(10_000) };
    await store.insertAll([large]);
    const holder = await findKeyHolder('comp_a', 'k');
    expect(holder).toMatchObject({ id: large.id, bodyHash: 'body 1' });
    expect(Object.keys(holder ?? {})).toHaveLength(9);
    const { storedBytes } = holder as KeyHolder;
    expect(storedBytes).toBeGreaterThan(10_000);
    expect(storedBytes).toBeLessThan(11_000);
  });

  it('refuses a message of a later batch, also when that is the only one', async () => {
    await store.insertAll([keyed(1, 'k')]);
    expect(await store.insertAll([keyed(2, 'k')])).toEqual(['repeated']);
    expect(await store.insertAll([keyed(3, 'k'), keyed(4, 'l')])).toEqual(['repeated', 'stored']);
  });

  it('is stored once when many writes have it at the same time', async () => {
    const writes = Array.from({ length: 20 }, (_, n) => store.insertAll([keyed(n, 'k')]));
    const outcomes = (await Promise.all(writes)).flat();
    expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'repeated')).toHaveLength(19);
  });

  it('is distinguished from an id that is stored already', async () => {
    await store.insertAll([keyed(1, 'k')]);
    expect(await store.insertAll([message(1), keyed(2, 'k')])).toEqual(['refused', 'repeated']);
  });

  it('may be the same in two companies, and is never found by another', async () => {
    expect(await store.insertAll([keyed(1, 'k'), keyed(2, 'k', 'comp_b')])).toEqual([
      ...['stored', 'stored'],
    ]);
    expect(await idOfHolder('comp_b', 'k')).toBe(message(2).id);
    expect(await findKeyHolder('comp_c', 'k')).toBeNull();
  });

  it('may be used again after it is released, and its message stays', async () => {
    const first = keyed(1, 'k');
    await store.insertAll([first]);
    const found = await findKeyHolder('comp_a', 'k');
    if (!found) throw new Error('the key has a holder');
    await queries.releaseKeys('comp_b', [{ key: 'k', found }]);
    expect(await store.insertAll([keyed(2, 'k')])).toEqual(['repeated']);
    await queries.releaseKeys('comp_a', [{ key: 'k', found }]);
    await queries.releaseKeys('comp_a', [{ key: 'k', found }]);
    expect(await findKeyHolder('comp_a', 'k')).toBeNull();
    expect(await queries.findOne('comp_a', first.id)).toEqual({ ...first, idempotency: null });
    expect(await store.insertAll([keyed(3, 'k')])).toEqual(['stored']);
    expect(await idOfHolder('comp_a', 'k')).toBe(message(3).id);
  });
});

it('a message that a replay has added webhooks to is found with them, and as it was accepted', async () => {
  const accepted = message(1, { targets: ['wh_2'], addedTargets: ['wh_3', 'wh_1'] });
  await store.insertAll([accepted]);
  const shown = await queries.findOne('comp_a', accepted.id);
  expect(shown?.targets).toEqual(['wh_1', 'wh_2', 'wh_3']);
  expect(await queries.findAccepted('comp_a', accepted.id)).toEqual(accepted);
  expect(await queries.findAccepted('comp_b', accepted.id)).toBeNull();
});

describe('the outlines of messages', () => {
  it('have what lists need and no payload, and belong to the company', async () => {
    const mine = message(1, { targets: ['wh_2'], disabledTargets: new Set(['wh_2']) });
    await store.insertAll([mine, message(2, { companyId: 'comp_b', targets: ['wh_2'] })]);
    const bounds = { messages: 9, targets: 9 };
    const found = await queries.listOutlines('comp_a', { webhookId: 'wh_2' }, bounds);
    const outline = { id: mine.id, appId: null, eventType: null, targets: ['wh_2'] };
    expect(found).toEqual([{ ...outline, disabledTargets: new Set(['wh_2']) }]);
    const ids = [mine.id, message(2).id];
    expect(await queries.outlinesOf('comp_a', ids, 9)).toEqual(found);
    expect(await queries.findMany('comp_a', ids, 1_000)).toEqual([mine]);
  });
});
