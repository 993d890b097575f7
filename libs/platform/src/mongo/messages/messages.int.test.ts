import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createMessageQueries, type MessageQueries } from './message-queries.ts';
import { createMessageStore, type MessageStore } from './messages.ts';

function message(n: number, overrides: Partial<Message> = {}): Message {
  return {
    id: `msg_01m7y9sd1v${String(n).padStart(16, '0')}`,
    companyId: 'comp_a',
    appId: null,
    payload: `{"n":${n},"x":1e400}`,
    targets: ['wh_1'],
    publisherId: 'gw_1',
    eventType: null,
    disabledTargets: [],
    idempotency: null,
    requestId: 'request-1',
    createdAtMs: 1_000 + n,
    ...overrides,
  };
}

describe('messages in the store', () => {
  let database: ScratchDatabase;
  let store: MessageStore;
  let queries: MessageQueries;

  beforeAll(async () => {
    database = await openScratchDatabase();
    store = createMessageStore(database.db);
    queries = createMessageQueries(database.db);
  });

  afterAll(() => database.drop());

  it('come back as they were stored, payload untouched', async () => {
    const stored = message(1);
    expect(await store.insertAll([stored])).toEqual(['stored']);
    expect(await queries.findOne('comp_a', stored.id)).toEqual(stored);
    expect(await queries.findOne('comp_b', stored.id)).toBeNull();
    expect(await store.payloadsOf([stored.id])).toEqual(new Map([[stored.id, stored.payload]]));
  });

  it('fail alone: one refused document leaves the rest of its batch stored', async () => {
    const batch = [message(10), message(1), message(11)];
    expect(await store.insertAll(batch)).toEqual(['stored', 'refused', 'stored']);
  });

  it('are paged for one publisher in the order of their ids', async () => {
    const publisherId = 'gw_2';
    await store.insertAll([20, 22, 21].map((n) => message(n, { publisherId })));
    await store.insertAll([message(23)]);
    const first = await store.pageOf({ publisherId, afterId: '', limit: 2 });
    const rest = await store.pageOf({ publisherId, afterId: first[1]?.id ?? '', limit: 2 });
    expect([...first, ...rest].map(({ id }) => id)).toEqual([20, 21, 22].map((n) => message(n).id));
  });

  it('are found by the millisecond that their ids begin with', async () => {
    const found = await queries.findByIdPrefix('comp_a', 'msg_01m7y9sd1v');
    expect(found.length).toBeGreaterThan(0);
    expect(await queries.findByIdPrefix('comp_a', 'msg_01m7y9sd1w')).toEqual([]);
  });
});

describe('the queries of the path of a message', () => {
  let database: ScratchDatabase;

  beforeAll(async () => {
    database = await openScratchDatabase();
  });

  afterAll(() => database.drop());

  // `publishers` and `leases` hold a document per process; they are read whole on purpose.
  const QUERIES = {
    'API key by hash': ['apiKeys', { hash: 'x' }, {}],
    'app of a company': ['apps', { _id: 'app_1', companyId: 'comp_a' }, {}],
    'webhooks of an app': ['webhooks', { appId: 'app_1', companyId: 'comp_a' }, { _id: 1 }],
    'webhooks by id': ['webhooks', { _id: { $in: ['wh_1', 'wh_2'] } }, {}],
    'payloads by id': ['messages', { _id: { $in: ['msg_1'] } }, {}],
    'messages of a publisher': [
      'messages',
      { _id: { $gt: 'msg_1' }, publisherId: 'g' },
      { _id: 1 },
    ],
    'messages of a millisecond': ['messages', { _id: { $gte: 'msg_1', $lt: 'msg_1~' } }, {}],
    'deliveries by id': ['deliveries', { _id: { $in: ['dlv_1'] }, companyId: 'comp_a' }, {}],
  } as const;

  it.each(Object.entries(QUERIES))('%s is served by an index', async (_, [name, filter, sort]) => {
    const plan = await collection(database.db, name)
      .find(filter)
      .sort(sort)
      .explain('queryPlanner');
    const winning = JSON.stringify(
      (plan as { queryPlanner: { winningPlan: unknown } }).queryPlanner.winningPlan,
    );
    expect(winning).not.toContain('COLLSCAN');
    expect(winning).not.toContain('"SORT"');
  });
});
