import { beforeAll, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import type { Profiled } from '../../../../../test/support/stores/profiled-queries.ts';
import {
  openFreshDatabase,
  openScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { BY_REASON_KEY } from '../days/day-collections.ts';
import type { DeliveryDocument } from '../documents.ts';
import {
  createDeliveryQueries,
  createStuckDeliveries,
  type DeliveryQueries,
  type FailureFilter,
} from './delivery-queries.ts';

const RANGES = [
  [{ fromId: 'msg_2' }, ['msg_3', 'msg_2']],
  [{ beforeId: 'msg_2' }, ['msg_1', 'msg_1']],
  [{ fromId: 'msg_1', beforeId: 'msg_3' }, ['msg_2', 'msg_1', 'msg_1']],
  [{ fromId: 'msg_4' }, []],
] as const;

function delivery(
  _id: string,
  messageId: string,
  status: DeliveryStatus,
  overrides: Partial<DeliveryDocument> = {},
): DeliveryDocument {
  return {
    _id,
    messageId,
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    status,
    reason: null,
    attemptCount: 2,
    attempts: [],
    nextAttemptAt: null,
    createdAt: new Date(1),
    updatedAt: new Date(7),
    ...overrides,
  };
}

const STORED: DeliveryDocument[] = [
  delivery('dlv_1', 'msg_1', 'exhausted', { appId: 'app_1' }),
  delivery('dlv_2', 'msg_1', 'exhausted', { webhookId: 'wh_2' }),
  delivery('dlv_3', 'msg_1', 'cancelled', { webhookId: 'wh_3' }),
  delivery('dlv_4', 'msg_2', 'exhausted'),
  delivery('dlv_5', 'msg_2', 'delivered', { webhookId: 'wh_2' }),
  delivery('dlv_6', 'msg_3', 'exhausted', { appId: 'app_1' }),
  delivery('dlv_7', 'msg_4', 'pending'),
  delivery('dlv_8', 'msg_5', 'pending'),
  delivery('dlv_9', 'msg_9', 'exhausted', { companyId: 'comp_b' }),
  delivery('dlv_0', 'msg_9', 'pending', { companyId: 'comp_b' }),
];

describe('the queries of the API about deliveries', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let queries: DeliveryQueries;

  beforeAll(async () => {
    queries = createDeliveryQueries(database.db);
    await collection(database.db, 'deliveries').insertMany(STORED);
  });

  const failed = (filter: Partial<FailureFilter>, limit = 9, companyId = 'comp_a') =>
    queries.messagesOfFailed(companyId, { status: 'exhausted', ...filter }, limit);

  it('return the message of each failure, newest first, once for each of its failures', async () => {
    expect(await failed({})).toEqual(['msg_3', 'msg_2', 'msg_1', 'msg_1']);
    expect(await failed({ status: 'cancelled' })).toEqual(['msg_1']);
    expect(await failed({}, 3)).toEqual(['msg_3', 'msg_2', 'msg_1']);
  });

  it.each(RANGES)(
    'include the first bound and exclude the second: %j',
    async (filter, expected) => {
      expect(await failed(filter)).toEqual(expected);
    },
  );

  it('are listed by reason along its index, and by status where a day has not got it yet', async () => {
    const deliveries = collection(database.db, 'deliveries');
    const idsOf = async (): Promise<string[]> => {
      const filter = { status: 'cancelled', reason: 'expired' } as const;
      const { found } = await queries.listUndelivered('comp_l', filter, 9);
      return found.map(({ id }) => id);
    };
    const own = { companyId: 'comp_l' };
    await deliveries.insertMany([
      delivery('dlv_a', 'msg_8', 'cancelled', { ...own, reason: 'expired' }),
      delivery('dlv_b', 'msg_9', 'cancelled', { ...own, reason: 'webhook_deleted' }),
    ]);
    expect(await idsOf()).toEqual(['dlv_a']);
    await deliveries.dropIndex(Object.entries(BY_REASON_KEY).flat().join('_'));
    try {
      // The caller leaves out the other one.
      expect(await idsOf()).toEqual(['dlv_b', 'dlv_a']);
    } finally {
      const partialFilterExpression = { status: { $in: ['exhausted', 'cancelled'] } };
      await deliveries.createIndexes([{ key: BY_REASON_KEY, partialFilterExpression }]);
    }
  });

  it('count pending deliveries up to the limit', async () => {
    expect(await queries.countPending('comp_a', 'wh_1', [], 100)).toBe(2);
    expect(await queries.countPending('comp_a', 'wh_1', [], 1)).toBe(1);
    expect(await queries.countPending('comp_a', 'wh_2', [], 100)).toBe(0);
  });

  it('count pending deliveries without those that are known', async () => {
    expect(await queries.countPending('comp_a', 'wh_1', ['dlv_8', 'dlv_none'], 100)).toBe(1);
    expect(await queries.countPending('comp_a', 'wh_1', ['dlv_7', 'dlv_8'], 100)).toBe(0);
  });

  it('return outlines of recorded deliveries', async () => {
    expect(await queries.outlinesOf('comp_a', ['dlv_5', 'dlv_none', 'dlv_9'])).toEqual([
      {
        id: 'dlv_5',
        webhookId: 'wh_2',
        status: 'delivered',
        attemptCount: 2,
        createdAtMs: 1,
        updatedAtMs: 7,
      },
    ]);
    expect(await queries.outlinesOf('comp_a', [])).toEqual([]);
  });

  it('return status, and outcome and duration of attempts without responses', async () => {
    const outcome = 'http_5xx' as const;
    const attempts = [1, 2].map((number) => ({
      id: `att_${number}`,
      number,
      trigger: 'retry' as const,
      outcome,
      statusCode: 500,
      response: 'long',
      responseHeaders: [],
      startedAt: new Date(1),
      durationMs: number,
    }));
    const stored = delivery('dlv_figures', 'msg_7', 'delivered', { attempts });
    await collection(database.db, 'deliveries').insertOne(stored);
    const found = await queries.figuresOf('comp_a', ['dlv_figures', 'dlv_none']);
    expect(found).toEqual([
      {
        status: 'delivered',
        attempts: [
          { outcome, durationMs: 1, startedAt: new Date(1) },
          { outcome, durationMs: 2, startedAt: new Date(1) },
        ],
      },
    ]);
  });

  it('return to each company its own deliveries only', async () => {
    expect(await failed({}, 9, 'comp_b')).toEqual(['msg_9']);
    expect(await failed({}, 9, 'comp_c')).toEqual([]);
    expect(await queries.countPending('comp_b', 'wh_1', [], 100)).toBe(1);
    expect(await queries.findMany('comp_b', ['dlv_1', 'dlv_9'])).toMatchObject([
      { id: 'dlv_9', attemptCount: 2 },
    ]);
    expect(await queries.figuresOf('comp_b', ['dlv_1', 'dlv_9'])).toEqual([
      { status: 'exhausted', attempts: [] },
    ]);
  });
});

describe('the queries for stuck deliveries', () => {
  const database = duringTests(openFreshDatabase, ({ drop }) => drop());

  const OVERDUE = { nextAttemptAt: new Date(1) };

  it('read no deliveries that wait, however many there are', async () => {
    const deliveries = collection(database.db, 'deliveries');
    const due = (id: number, fields: Partial<DeliveryDocument>) =>
      delivery(`dlv_${id}`, `msg_${id}`, 'pending', { ...OVERDUE, ...fields });
    const hold = { waiting: 'hold', waitingSince: new Date(7) } as const;
    await deliveries.insertMany([
      ...Array.from({ length: 500 }, (_, n) => due(n, hold)),
      due(500, { nextAttemptAt: new Date(2) }),
      due(501, { nextAttemptAt: null, updatedAt: new Date(8) }),
    ]);
    const { findOverdue, findUnended } = createStuckDeliveries(database.db);
    await database.db.command({ profile: 2 });
    expect(await findOverdue(9, 10)).toMatchObject([{ id: 'dlv_500' }]);
    expect(await findUnended(9, 10)).toMatchObject([{ id: 'dlv_501', waiting: null }]);
    await database.db.command({ profile: 0 });
    const profile = database.db.collection<Profiled>('system.profile');
    const reads = await profile.find({ 'command.find': 'deliveries' }).toArray();
    const isIndexed = ({ planSummary, hasSortStage }: Profiled): boolean =>
      planSummary?.startsWith('IXSCAN') === true && !hasSortStage;
    expect(reads.map((read) => [read.docsExamined, isIndexed(read)])).toEqual(
      Array.from({ length: 3 }, () => [1, true]),
    );
  });
});
