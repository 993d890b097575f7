import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { createDeliveryStore, type DeliveryStore, type SettledDelivery } from './deliveries.ts';
import { createDeliveryQueries, type DeliveryQueries } from './delivery-queries.ts';

const COMPANY = 'comp_a';
let counter = 0;

/** A settled first attempt of a new delivery. */
function settled(number = 1, overrides: Partial<SettledDelivery> = {}): SettledDelivery {
  counter += 1;
  const messageId = `msg_${String(counter).padStart(26, '0')}`;
  const id = deliveryIdOf(messageId, 'wh_1');
  return {
    id,
    messageId,
    webhookId: 'wh_1',
    companyId: COMPANY,
    appId: null,
    status: 'pending',
    reason: null,
    nextAttemptAtMs: 5_000,
    createdAtMs: 1_000,
    updatedAtMs: 2_000,
    attempt: {
      id: attemptIdOf(id, number),
      number,
      trigger: number === 1 ? 'first' : 'retry',
      outcome: 'http_5xx',
      statusCode: 500,
      response: 'no',
      responseHeaders: [{ key: 'server', value: 's' }],
      startedAtMs: 1_500,
      durationMs: 20,
    },
    ...overrides,
  };
}

/** The next attempt of the same delivery. */
function next(
  previous: SettledDelivery,
  overrides: Partial<SettledDelivery> = {},
): SettledDelivery {
  const number = (previous.attempt?.number ?? 0) + 1;
  return { ...settled(number), id: previous.id, messageId: previous.messageId, ...overrides };
}

describe('deliveries in the store', () => {
  let database: ScratchDatabase;
  let store: DeliveryStore;
  let queries: DeliveryQueries;

  beforeAll(async () => {
    database = await openScratchDatabase();
    store = createDeliveryStore(database.db);
    queries = createDeliveryQueries(database.db);
  });

  afterAll(() => database.drop());

  async function stateOf(id: string) {
    return (await store.statesOf([id])).get(id);
  }

  it('come back as they were settled', async () => {
    const delivery = settled();
    await store.insertAll([delivery]);
    const [found] = await queries.findMany(COMPANY, [delivery.id]);
    const { attempt, ...rest } = delivery;
    expect(found).toEqual({ ...rest, attemptCount: 1, attempts: [attempt] });
  });

  it('tell what is recorded of them, with the newest attempt only', async () => {
    const first = settled();
    const second = next(first);
    const cancelled = settled(1, { status: 'cancelled', reason: 'webhook_deleted', attempt: null });
    await store.insertAll([first, cancelled]);
    await store.appendAttempts([second]);
    expect(await store.recordedOf([first.id, cancelled.id, 'dlv_unknown'])).toEqual(
      new Map([
        [first.id, { status: 'pending', attemptCount: 2, lastAttempt: second.attempt }],
        [cancelled.id, { status: 'cancelled', attemptCount: 0, lastAttempt: null }],
      ]),
    );
  });

  it('are never shown to another company', async () => {
    const delivery = settled();
    await store.insertAll([delivery]);
    expect(await queries.findMany('comp_b', [delivery.id])).toEqual([]);
  });

  it('report which ids were there already and insert the rest of the batch', async () => {
    const [old, fresh] = [settled(), settled()];
    await store.insertAll([old]);
    expect(await store.insertAll([old, fresh])).toEqual(new Set([old.id]));
    expect(await stateOf(fresh.id)).toEqual({ status: 'pending', attemptCount: 1 });
  });

  it('take a later attempt once, however often it is recorded', async () => {
    const first = settled();
    const second = next(first);
    await store.insertAll([first]);
    expect(await store.appendAttempts([second])).toEqual({ appended: 1 });
    expect(await store.appendAttempts([second])).toEqual({ appended: 0 });
    const [found] = await queries.findMany(COMPANY, [first.id]);
    expect(found?.attempts.map(({ number }) => number)).toEqual([1, 2]);
  });

  it('take no attempt once they are final', async () => {
    const done = settled(1, { status: 'delivered', nextAttemptAtMs: null });
    await store.insertAll([done]);
    expect(await store.appendAttempts([next(done)])).toEqual({ appended: 0 });
    await store.cancelPending([{ id: done.id, reason: 'webhook_deleted', atMs: 9 }]);
    expect(await store.exhaust(done.id, 1, 9)).toBe(false);
    expect(await stateOf(done.id)).toEqual({ status: 'delivered', attemptCount: 1 });
  });

  it('let a success replace the failure that was recorded under the same number', async () => {
    const first = settled();
    await store.insertAll([first]);
    const attempt = first.attempt && {
      ...first.attempt,
      outcome: 'success' as const,
      statusCode: 200,
    };
    await store.replaceFailures([
      { ...first, status: 'delivered', nextAttemptAtMs: null, attempt },
    ]);
    const [found] = await queries.findMany(COMPANY, [first.id]);
    expect(found).toMatchObject({ status: 'delivered', attempts: [{ outcome: 'success' }] });
    expect(found?.attempts).toHaveLength(1);
  });

  it('are exhausted once, and only behind the attempt that ended the schedule', async () => {
    const first = settled();
    await store.insertAll([first]);
    expect(await store.exhaust(first.id, 2, 9)).toBe(false);
    expect(await store.exhaust(first.id, 1, 9)).toBe(true);
    expect(await store.exhaust(first.id, 1, 9)).toBe(false);
    expect(await stateOf(first.id)).toEqual({ status: 'exhausted', attemptCount: 1 });
  });

  it('can be cancelled before their first attempt', async () => {
    const cancelled = settled(1, { status: 'cancelled', reason: 'webhook_deleted', attempt: null });
    await store.insertAll([cancelled]);
    expect(await stateOf(cancelled.id)).toEqual({ status: 'cancelled', attemptCount: 0 });
  });
});
