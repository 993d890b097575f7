import { describe, expect, test } from '@jest/globals';
import type { Attempt, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type {
  DeliveryStore,
  SettledDelivery,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createRecordAttempts } from './record-attempts.ts';

interface Stored {
  status: DeliveryStatus;
  outcomes: string[];
  attemptCount: number;
}

/** What the contract of the store says, in memory. */
function createStore(documents: Map<string, Stored>): DeliveryStore {
  const open = (id: string, test: (stored: Stored) => boolean): Stored | undefined => {
    const stored = documents.get(id);
    return stored?.status === 'pending' && test(stored) ? stored : undefined;
  };
  const unused = () => Promise.reject(new Error('not used here'));
  return {
    insertAll(batch) {
      const known = batch.flatMap(({ id, status, attempt }) => {
        if (documents.has(id)) return [id];
        const outcomes = attempt ? [attempt.outcome] : [];
        documents.set(id, { status, outcomes, attemptCount: attempt?.number ?? 0 });
        return [];
      });
      return Promise.resolve(new Set(known));
    },
    appendAttempts(batch) {
      let appended = 0;
      for (const { id, status, attempt } of batch) {
        const number = attempt?.number ?? 0;
        const stored = open(id, ({ attemptCount }) => attemptCount < number);
        if (!stored || !attempt) continue;
        stored.outcomes.push(attempt.outcome);
        Object.assign(stored, { status, attemptCount: number });
        appended += 1;
      }
      return Promise.resolve({ appended });
    },
    appendToCancelled: () => Promise.resolve(),
    replaceFailures(batch) {
      for (const { id, status, attempt } of batch) {
        const stored = open(id, ({ attemptCount }) => attemptCount === attempt?.number);
        if (!stored || !attempt) continue;
        stored.outcomes[stored.outcomes.length - 1] = attempt.outcome;
        stored.status = status;
      }
      return Promise.resolve();
    },
    cancelPending(batch) {
      for (const { id } of batch)
        Object.assign(open(id, () => true) ?? {}, { status: 'cancelled' });
      return Promise.resolve();
    },
    statesOf: (ids) => Promise.resolve(new Map([...documents].filter(([id]) => ids.includes(id)))),
    exhaust: unused,
    recordedOf: unused,
  };
}

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

/** Records one batch over what is stored; answers the ids to publish and the state afterwards. */
async function record(before: Record<string, Stored>, ...batch: SettledDelivery[]) {
  const documents = new Map(Object.entries(before));
  const unfinished = await createRecordAttempts(createStore(documents))(batch);
  return { unfinished: [...unfinished], after: Object.fromEntries(documents) };
}

describe('recording attempts', () => {
  test('inserts first attempts and answers the failed ones', async () => {
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

  test('answers a redelivered first failure again, whose publication may have been lost', async () => {
    const { unfinished, after } = await record({ a: pending(1) }, settled('a', 1, 'timeout'));
    expect(unfinished).toEqual(['a']);
    expect(after).toEqual({ a: pending(1) });
  });

  test('changes nothing for a redelivered attempt of a delivery that has moved on', async () => {
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

  test.each(['delivered', 'exhausted', 'cancelled'] as const)(
    'leaves a delivery that is %s as it is',
    async (status) => {
      const before = { a: { ...pending(2), status } };
      for (const outcome of ['timeout', 'success'] as const) {
        const { unfinished, after } = await record(before, settled('a', 3, outcome));
        expect([unfinished, after]).toEqual([[], before]);
      }
    },
  );

  test('writes the document again when it is gone', async () => {
    const { unfinished, after } = await record({}, settled('a', 4, 'timeout'));
    expect(unfinished).toEqual(['a']);
    expect(after.a).toMatchObject({ status: 'pending', attemptCount: 4 });
  });

  test('lets a success replace the failure of its twin', async () => {
    const { unfinished, after } = await record({ a: pending(2) }, settled('a', 2, 'success'));
    expect(unfinished).toEqual([]);
    expect(after.a).toEqual({
      status: 'delivered',
      outcomes: ['timeout', 'success'],
      attemptCount: 2,
    });
  });

  test('never lets a failure replace the success of its twin', async () => {
    const before = { a: { status: 'delivered' as const, outcomes: ['success'], attemptCount: 1 } };
    const { unfinished, after } = await record(before, settled('a', 1, 'timeout'));
    expect([unfinished, after]).toEqual([[], before]);
  });

  test('stores a delivery that is cancelled before its first attempt, and publishes nothing', async () => {
    const { unfinished, after } = await record({}, cancelled('a'));
    expect([unfinished, after.a?.status]).toEqual([[], 'cancelled']);
  });

  test('cancels a pending delivery and no other', async () => {
    const delivered = { ...pending(1), status: 'delivered' as const };
    const before = { a: pending(1), b: delivered };
    const { unfinished, after } = await record(before, cancelled('a'), cancelled('b'));
    expect([unfinished, after.a?.status, after.b?.status]).toEqual([[], 'cancelled', 'delivered']);
  });

  test('judges each delivery of a mixed batch by itself', async () => {
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

  test('changes nothing when it is repeated', async () => {
    const batch = [settled('a', 1, 'timeout'), settled('b', 1, 'success'), cancelled('c')];
    const first = await record({}, ...batch);
    const second = await record(structuredClone(first.after), ...batch);
    expect(second).toEqual(first);
  });
});
