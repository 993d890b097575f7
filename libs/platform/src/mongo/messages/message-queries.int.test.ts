import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createMessageQueries, type MessageQueries } from './message-queries.ts';
import { createMessageStore, type MessageStore } from './messages.ts';

const START_MS = 1_700_000_000_000;

let database: ScratchDatabase;
let store: MessageStore;
let queries: MessageQueries;

beforeAll(async () => {
  database = await openScratchDatabase();
  store = createMessageStore(database.db);
  queries = createMessageQueries(database.db);
});

beforeEach(async () => {
  await collection(database.db, 'messages').deleteMany({});
});

afterAll(() => database.drop());

/** The nth message; one for each millisecond. */
function message(n: number, overrides: Partial<Message> = {}): Message {
  return sampleMessage(`${firstIdAt('msg', START_MS + n)}${'0'.repeat(16)}`, overrides);
}

const keyed = (n: number, key: string, companyId = 'comp_a') =>
  message(n, { companyId, idempotency: { key, bodyHash: `body ${n}`, answer: `sealed ${n}` } });

describe('an idempotency key', () => {
  it('belongs to the first message of a batch that has it, and refuses no other message', async () => {
    const batch = [keyed(1, 'k'), keyed(2, 'k'), message(3), keyed(4, 'l'), keyed(5, 'k')];
    expect(await store.insertAll(batch)).toEqual([
      ...['stored', 'repeated', 'stored', 'stored', 'repeated'],
    ]);
    expect(await queries.findByKey('comp_a', 'k')).toEqual(batch[0]);
    expect(await collection(database.db, 'messages').countDocuments({})).toBe(3);
  });

  it('refuses another message in a later batch, also when that holds nothing else', async () => {
    await store.insertAll([keyed(1, 'k')]);
    expect(await store.insertAll([keyed(2, 'k')])).toEqual(['repeated']);
    expect(await store.insertAll([keyed(3, 'k'), keyed(4, 'l')])).toEqual(['repeated', 'stored']);
  });

  it('is claimed once by many writes at the same time', async () => {
    const writes = Array.from({ length: 20 }, (_, n) => store.insertAll([keyed(n, 'k')]));
    const outcomes = (await Promise.all(writes)).flat();
    expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'repeated')).toHaveLength(19);
  });

  it('is told apart from an id that is there already', async () => {
    await store.insertAll([keyed(1, 'k')]);
    expect(await store.insertAll([message(1), keyed(2, 'k')])).toEqual(['refused', 'repeated']);
  });

  it('is the own one of each company, and never shown to another', async () => {
    expect(await store.insertAll([keyed(1, 'k'), keyed(2, 'k', 'comp_b')])).toEqual([
      ...['stored', 'stored'],
    ]);
    expect((await queries.findByKey('comp_b', 'k'))?.id).toBe(message(2).id);
    expect(await queries.findByKey('comp_c', 'k')).toBeNull();
  });

  it('is free again once it is released, and its message stays', async () => {
    const first = keyed(1, 'k');
    await store.insertAll([first]);
    await queries.releaseKey('comp_b', first.id);
    expect(await store.insertAll([keyed(2, 'k')])).toEqual(['repeated']);
    await queries.releaseKey('comp_a', first.id);
    await queries.releaseKey('comp_a', first.id);
    expect(await queries.findByKey('comp_a', 'k')).toBeNull();
    expect(await queries.findOne('comp_a', first.id)).toEqual({ ...first, idempotency: null });
    expect(await store.insertAll([keyed(3, 'k')])).toEqual(['stored']);
    expect((await queries.findByKey('comp_a', 'k'))?.id).toBe(message(3).id);
  });
});

describe('the outlines of messages', () => {
  const idsOf = (numbers: readonly number[]) => numbers.map((n) => message(n).id);

  beforeEach(async () => {
    await store.insertAll([
      message(1, { appId: 'app_1', targets: ['wh_1', 'wh_2'] }),
      message(2, { targets: ['wh_2'], disabledTargets: ['wh_2'] }),
      message(3, { appId: 'app_1', targets: [] }),
      message(4, { companyId: 'comp_b', appId: 'app_1', targets: ['wh_1', 'wh_2'] }),
      message(5, { appId: 'app_2', targets: ['wh_1'] }),
    ]);
  });

  it.each<[string, Parameters<MessageQueries['listOutlines']>[1], number, number[]]>([
    ['all, newest first', {}, 9, [5, 3, 2, 1]],
    ['no more than the limit', {}, 2, [5, 3]],
    ['of an app', { appId: 'app_1' }, 9, [3, 1]],
    ['to a webhook', { webhookId: 'wh_2' }, 9, [2, 1]],
    ['both', { appId: 'app_1', webhookId: 'wh_1' }, 9, [1]],
    ['from an id on', { fromId: message(2).id }, 9, [5, 3, 2]],
    ['before an id', { beforeId: message(3).id }, 9, [2, 1]],
    ['between two', { fromId: message(2).id, beforeId: message(5).id }, 9, [3, 2]],
    ['from a time on', { fromId: firstIdAt('msg', START_MS + 3) }, 9, [5, 3]],
    ['before a time', { beforeId: firstIdAt('msg', START_MS + 3) }, 9, [2, 1]],
    ['an empty span', { fromId: message(3).id, beforeId: message(3).id }, 9, []],
  ])('are listed by %s', async (_what, filter, limit, expected) => {
    const found = await queries.listOutlines('comp_a', filter, { messages: limit, targets: 9 });
    expect(found.map(({ id }) => id)).toEqual(idsOf(expected));
  });

  it.each([
    [1, [5]],
    [2, [5, 3, 2]],
    [3, [5, 3, 2, 1]],
  ])('end behind the one that reaches the bound of targets: %i', async (targets, expected) => {
    const found = await queries.listOutlines('comp_a', {}, { messages: 9, targets });
    expect(found.map(({ id }) => id)).toEqual(idsOf(expected));
    const byId = await queries.outlinesOf('comp_a', idsOf([1, 2, 3, 5]), targets);
    expect(byId).toEqual(found);
  });

  it('hold what lists need and no payload', async () => {
    const bounds = { messages: 1, targets: 9 };
    const [found] = await queries.listOutlines('comp_a', { webhookId: 'wh_2' }, bounds);
    expect(found).toEqual({
      id: message(2).id,
      appId: null,
      targets: ['wh_2'],
      disabledTargets: ['wh_2'],
    });
    expect(await queries.outlinesOf('comp_a', idsOf([2, 4]), 9)).toEqual([found]);
  });

  it('and messages by id are those of the company', async () => {
    const found = await queries.findMany('comp_a', idsOf([1, 4, 9]));
    expect(found.map(({ id }) => id)).toEqual(idsOf([1]));
    expect(await queries.findMany('comp_a', [])).toEqual([]);
  });
});
