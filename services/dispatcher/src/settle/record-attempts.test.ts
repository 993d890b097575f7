import { describe, expect, test } from '@jest/globals';
import type { Attempt, Delivery, DeliveryStatus } from '@posthorn/domain/message/delivery.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import { createMemoryDeliveries } from '../../../../test/support/memory/memory-deliveries.ts';
import { createRecordAttempts } from './record-attempts.ts';

interface Stored {
  status: DeliveryStatus;
  outcomes: string[];
  attemptCount: number;
}

/** A stored delivery with these attempts. */
function toDelivery(id: string, { status, outcomes, attemptCount }: Stored): Delivery {
  const { attempt, ...rest } = settled(id, attemptCount, 'timeout');
  const attempts = outcomes.map((outcome, index) => ({ ...attempt, number: index + 1, outcome }));
  return { ...rest, status, attempts: attempts as Attempt[], attemptCount };
}

const toStored = ({ status, attempts, attemptCount }: Delivery): Stored => ({
  status,
  outcomes: attempts.map(({ outcome }) => outcome),
  attemptCount,
});

function settled(id: string, number: number, outcome: Attempt['outcome']): SettledDelivery {
  return {
    id,
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_1',
    appId: null,
    reason: null,
    status: outcome === 'success' ? 'delivered' : 'pending',
    nextAttemptAtMs: null,
    createdAtMs: 1,
    updatedAtMs: 2,
    attempt: {
      id: `att_${number}`,
      number,
      trigger: 'first',
      outcome,
      statusCode: null,
      response: null,
      responseHeaders: [],
      startedAtMs: 1,
      durationMs: 1,
    },
  };
}

const cancelled = (id: string): SettledDelivery => ({
  ...settled(id, 1, 'aborted'),
  status: 'cancelled',
  reason: 'webhook_deleted',
  attempt: null,
});

const pending = (attemptCount: number): Stored => ({
  status: 'pending',
  outcomes: Array<string>(attemptCount).fill('timeout'),
  attemptCount,
});

/** Records one batch on top of what is stored. Resolves with the ids to publish and the state after it. */
async function record(before: Record<string, Stored>, ...batch: SettledDelivery[]) {
  const store = createMemoryDeliveries(
    new Map(Object.entries(before).map(([id, stored]) => [id, toDelivery(id, stored)])),
  );
  const unfinished = await createRecordAttempts(store)(batch);
  const after = [...store.stored].map(([id, delivery]) => [id, toStored(delivery)] as const);
  return { unfinished: [...unfinished], after: Object.fromEntries(after) };
}

describe('recording attempts', () => {
  test('inserts first attempts and returns the failed ones', async () => {
    const batch = [
      settled('a', 1, 'timeout'),
      settled('b', 1, 'success'),
      settled('c', 1, 'http_5xx'),
    ];
    const { unfinished, after } = await record({}, ...batch);
    expect(unfinished).toEqual(['a', 'c']);
    expect(after.b).toEqual({ status: 'delivered', outcomes: ['success'], attemptCount: 1 });
    expect(after.c).toEqual({ status: 'pending', outcomes: ['http_5xx'], attemptCount: 1 });
  });

  test('returns a repeated first failure again, because it may not have been published', async () => {
    const { unfinished, after } = await record({ a: pending(1) }, settled('a', 1, 'timeout'));
    expect(unfinished).toEqual(['a']);
    expect(after).toEqual({ a: pending(1) });
  });

  test('changes nothing for a repeated attempt of a delivery that has gone on', async () => {
    const { unfinished, after } = await record({ a: pending(3) }, settled('a', 1, 'http_5xx'));
    expect([unfinished, after]).toEqual([[], { a: pending(3) }]);
  });

  test('appends later attempts', async () => {
    const before = { a: pending(1), b: pending(6) };
    const batch = [settled('a', 2, 'http_429'), settled('b', 7, 'success')];
    const { unfinished, after } = await record(before, ...batch);
    expect(unfinished).toEqual(['a']);
    expect(after.a?.outcomes).toEqual(['timeout', 'http_429']);
    expect(after.b).toMatchObject({ status: 'delivered', attemptCount: 7 });
  });

  test('appends an attempt that was made while its delivery was cancelled, and returns nothing', async () => {
    const before = { a: { ...pending(1), status: 'cancelled' as const } };
    const failed = await record(before, settled('a', 2, 'http_5xx'));
    expect([failed.unfinished, failed.after.a]).toEqual([
      [],
      { status: 'cancelled', outcomes: ['timeout', 'http_5xx'], attemptCount: 2 },
    ]);
    const won = await record(before, settled('a', 2, 'success'));
    expect([won.unfinished, won.after.a?.status]).toEqual([[], 'delivered']);
  });

  test.each(['delivered', 'exhausted'] as const)(
    'leaves a delivery that is %s as it is',
    async (status) => {
      const before = { a: { ...pending(2), status } };
      for (const outcome of ['timeout', 'success'] as const) {
        const { unfinished, after } = await record(before, settled('a', 3, outcome));
        expect([unfinished, after]).toEqual([[], before]);
      }
    },
  );

  test('writes the document again when it is no longer stored', async () => {
    const { unfinished, after } = await record({}, settled('a', 4, 'timeout'));
    expect(unfinished).toEqual(['a']);
    expect(after.a).toMatchObject({ status: 'pending', attemptCount: 4 });
  });

  test('replaces the failure of the same attempt by its success', async () => {
    const { unfinished, after } = await record({ a: pending(2) }, settled('a', 2, 'success'));
    expect(unfinished).toEqual([]);
    expect(after.a).toEqual({
      status: 'delivered',
      outcomes: ['timeout', 'success'],
      attemptCount: 2,
    });
  });

  test('never replaces the success of the same attempt by a failure', async () => {
    const before = { a: { status: 'delivered' as const, outcomes: ['success'], attemptCount: 1 } };
    const { unfinished, after } = await record(before, settled('a', 1, 'timeout'));
    expect([unfinished, after]).toEqual([[], before]);
  });

  test('stores a delivery that is cancelled before its first attempt, and returns nothing', async () => {
    const { unfinished, after } = await record({}, cancelled('a'));
    expect([unfinished, after.a?.status]).toEqual([[], 'cancelled']);
  });

  test('cancels only pending deliveries', async () => {
    const delivered = { ...pending(1), status: 'delivered' as const };
    const before = { a: pending(1), b: delivered };
    const { unfinished, after } = await record(before, cancelled('a'), cancelled('b'));
    expect([unfinished, after.a?.status, after.b?.status]).toEqual([[], 'cancelled', 'delivered']);
  });

  test('decides about each delivery of a mixed batch by itself', async () => {
    const before = { moved: pending(5), same: pending(2), won: pending(1) };
    const batch = [
      ...[
        settled('new', 1, 'timeout'),
        settled('moved', 2, 'timeout'),
        settled('same', 2, 'timeout'),
      ],
      ...[settled('won', 2, 'success'), settled('gone', 3, 'http_5xx'), cancelled('off')],
    ];
    const { unfinished, after } = await record(before, ...batch);
    expect(unfinished.sort()).toEqual(['gone', 'new', 'same']);
    expect(after.won?.status).toBe('delivered');
    expect(after.moved).toEqual(pending(5));
  });

  test('changes nothing when a batch is repeated', async () => {
    const batch = [settled('a', 1, 'timeout'), settled('b', 1, 'success'), cancelled('c')];
    const first = await record({}, ...batch);
    const second = await record(structuredClone(first.after), ...batch);
    expect(second).toEqual(first);
  });
});
