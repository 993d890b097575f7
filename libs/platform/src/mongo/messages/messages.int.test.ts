import { beforeAll, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createMessageQueries } from './message-queries.ts';
import { createMessageStore } from './messages.ts';

describe('a stored message', () => {
  const stored = sampleMessage(`msg_01m7y9sd1v${'0'.repeat(16)}`);
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());

  beforeAll(async () => {
    await createMessageStore(database.db).insertAll([stored]);
  });

  it('is found by its company and by no other', async () => {
    const queries = createMessageQueries(database.db);
    expect(await queries.findOne('comp_a', stored.id)).toEqual(stored);
    expect(await queries.findOne('comp_b', stored.id)).toBeNull();
  });

  it('is found by the millisecond with which its id begins', async () => {
    const queries = createMessageQueries(database.db);
    const at = async (companyId: string, timePart: string) =>
      (await Array.fromAsync(queries.outlinesAt(companyId, timePart))).map(({ id }) => id);
    expect(await at('comp_a', '01m7y9sd1v')).toEqual([stored.id]);
    expect(await at('comp_a', '01m7y9sd1w')).toEqual([]);
    expect(await at('comp_b', '01m7y9sd1v')).toEqual([]);
  });
});

describe('the queries on the way of a message', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());

  // `publishers` and `leases` have a document for each process, and are read whole.
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
