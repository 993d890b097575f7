import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { countingIds } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createDeliveryStore, type SettledDelivery } from './deliveries.ts';
import { createStuckDeliveries, type StuckDeliveries } from './stuck-deliveries.ts';

const newId = countingIds();

/** Pending after a failed attempt. */
function failed(fields: Partial<SettledDelivery>, number = 1): SettledDelivery {
  const messageId = newId('msg');
  const id = deliveryIdOf(messageId, 'wh_1');
  return {
    id,
    messageId,
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    status: 'pending',
    reason: null,
    nextAttemptAtMs: null,
    createdAtMs: Date.now(),
    updatedAtMs: 1_000,
    attempt: {
      id: attemptIdOf(id, number),
      number,
      trigger: 'first',
      outcome: 'http_5xx',
      statusCode: 500,
      response: 'no',
      responseHeaders: [],
      startedAtMs: 900,
      durationMs: 100,
    },
    ...fields,
  };
}

describe('deliveries that stand still', () => {
  let database: ScratchDatabase;
  let stuck: StuckDeliveries;
  let insert: (...settled: SettledDelivery[]) => Promise<unknown>;

  beforeAll(async () => {
    database = await openScratchDatabase();
    stuck = createStuckDeliveries(database.db);
    const { insertAll } = createDeliveryStore(database.db);
    insert = (...settled) => insertAll(settled);
  });

  beforeEach(() => collection(database.db, 'deliveries').deleteMany({}));

  afterAll(() => database.drop());

  const overdueIds = async (beforeMs: number, limit = 10): Promise<string[]> =>
    (await stuck.findOverdue(beforeMs, limit)).map(({ id }) => id);
  const unendedIds = async (beforeMs: number): Promise<string[]> =>
    (await stuck.findUnended(beforeMs, 10)).map(({ id }) => id);

  it('are those whose next attempt was due long ago, the longest overdue first', async () => {
    const [late, later, waiting] = [3, 2, 5].map((ms) => failed({ nextAttemptAtMs: ms }));
    const ended = failed({ status: 'exhausted', nextAttemptAtMs: 1 });
    if (!late || !later || !waiting) throw new Error('none made');
    await insert(late, later, waiting, ended, failed({}));
    expect(await overdueIds(5)).toEqual([later.id, late.id]);
    expect(await overdueIds(5, 1)).toEqual([later.id]);
  });

  it('are those that nothing follows and that nobody has ended', async () => {
    const unended = failed({});
    const fresh = failed({ updatedAtMs: 2_000 });
    await insert(unended, fresh, failed({ nextAttemptAtMs: 1 }), failed({ status: 'delivered' }));
    expect(await unendedIds(2_000)).toEqual([unended.id]);
    const [found] = await stuck.findUnended(2_000, 10);
    const { attempt, ...rest } = unended;
    expect(found).toEqual({ ...rest, attemptCount: 1, attempts: [attempt] });
  });

  it('come with the newest of their attempts only', async () => {
    const first = failed({ nextAttemptAtMs: 1 });
    await insert(first);
    const second = { ...failed({ nextAttemptAtMs: 2 }, 2), id: first.id };
    await createDeliveryStore(database.db).appendAttempts([second]);
    const [found] = await stuck.findOverdue(5, 1);
    expect(found?.attempts).toEqual([second.attempt]);
  });

  it('are left alone once they were driven, until they stand still anew', async () => {
    await insert(failed({ nextAttemptAtMs: 1 }), failed({}));
    await stuck.noteDriven(
      [...(await stuck.findOverdue(5, 10)), ...(await stuck.findUnended(5_000, 10))],
      9_000,
    );
    expect([await overdueIds(9_000), await unendedIds(9_000)]).toEqual([[], []]);
    expect((await overdueIds(9_001)).concat(await unendedIds(9_001))).toHaveLength(2);
  });

  it('are not touched when they have moved on meanwhile', async () => {
    const first = failed({ nextAttemptAtMs: 1 });
    await insert(first);
    const before = await stuck.findOverdue(5, 1);
    const second = { ...failed({ nextAttemptAtMs: 2 }, 2), id: first.id };
    await createDeliveryStore(database.db).appendAttempts([second]);
    await stuck.noteDriven(before, 9_000);
    const [found] = await stuck.findOverdue(5, 1);
    expect(found).toMatchObject({ attemptCount: 2, nextAttemptAtMs: 2 });
  });

  it.each([
    ['overdue', { nextAttemptAt: { $lt: new Date(5) } }, { nextAttemptAt: 1 } as const],
    ['unended', { nextAttemptAt: null, updatedAt: { $lt: new Date(5) } }, {}],
  ])('are found by an index that holds pending ones only: %s', async (_what, which, sort) => {
    const found = collection(database.db, 'deliveries').find({ status: 'pending', ...which });
    const plan = JSON.stringify(await found.sort(sort).limit(1).explain('queryPlanner'));
    expect(plan).toContain('"indexName":"nextAttemptAt_1_updatedAt_1"');
    expect(plan).not.toMatch(/"COLLSCAN"|"SORT"/);
  });
});
