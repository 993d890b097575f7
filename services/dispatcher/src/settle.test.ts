import { beforeEach, describe, expect, test } from '@jest/globals';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { Attempt, Delivery, DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { CHECK_AFTER_MS } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type { FinishedResend } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import { createMemoryDeliveries } from '../../../test/support/memory/memory-deliveries.ts';
import { sampleDue } from '../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { createDispatcherMetrics } from './metrics.ts';
import {
  createErasePayloads,
  createRecordAttempts,
  createSettleResend,
  type ErasePayloads,
  type Settle,
  type SettledAttempt,
} from './settle.ts';

describe('settle resend', () => {
  const NOW_MS = 1_700_000_000_000;

  let finished: FinishedResend[][];
  /** How many calls of the store fail before one succeeds. */
  let failures: number;
  let registry: Registry;
  let erased: DueAttempt[];
  let settle: Settle;

  beforeEach(() => {
    [finished, failures, registry, erased] = [[], 0, new Registry(), []];
    settle = createSettleResend({
      keepTryingWhileDraining: keepTrying,
      erasePayloads: (dues) => Promise.resolve(void erased.push(...dues)),
      marks: {
        finish(batch) {
          finished.push([...batch]);
          failures -= 1;
          return failures >= 0 ? Promise.reject(new Error('MongoDB is away')) : Promise.resolve();
        },
      },
      metrics: createDispatcherMetrics(registry),
      counts: { add: () => undefined, makeRoom: () => Promise.resolve() },
      announce: () => undefined,
      logger: createLogger('test', 'silent'),
      nowMs: () => NOW_MS,
    });
  });

  function due(n: number): DueAttempt {
    const messageId = `msg_${String(n).padStart(26, '0')}`;
    return sampleDue({ messageId, attemptNumber: 8, trigger: 'resend' });
  }

  function attempted(n: number, outcome: Attempt['outcome'] = 'success'): SettledAttempt {
    const attempt: Attempt = {
      id: 'att_8',
      number: 8,
      trigger: 'resend',
      outcome,
      statusCode: null,
      response: null,
      responseHeaders: [],
      startedAtMs: NOW_MS,
      durationMs: 20,
    };
    return {
      kind: 'attempted',
      due: due(n),
      attempt,
      appId: 'app_1',
      payloadBytes: 2,
      headers: {},
      cancelReason: null,
      isRecorded: false,
    };
  }

  async function countOf(name: string): Promise<number> {
    const metric = await registry.getSingleMetric(name)?.get();
    return (metric?.values ?? []).reduce((sum, { value }) => sum + value, 0);
  }

  describe('settling a resend', () => {
    test.each<[Attempt['outcome'], number]>([
      ['success', 1],
      ['http_5xx', 0],
    ])('records and counts its attempt: %s', async (outcome, deliveries) => {
      const settled = attempted(1, outcome);
      await settle(settled);
      const { deliveryId } = due(1);
      const { attempt } = settled;
      expect(finished).toEqual([[{ deliveryId, attemptNumber: 8, attempt, atMs: NOW_MS }]]);
      expect(await countOf('posthorn_delivery_attempts_total')).toBe(1);
      expect(await countOf('posthorn_deliveries_finished_total')).toBe(deliveries);
    });

    test('records that it was not made, and counts nothing', async () => {
      await settle({ kind: 'cancelled', due: due(1), reason: 'webhook_disabled' });
      expect(finished.flat()).toMatchObject([{ attemptNumber: 8, attempt: null }]);
      expect(await countOf('posthorn_delivery_attempts_total')).toBe(0);
      expect(await countOf('posthorn_deliveries_finished_total')).toBe(0);
    });

    test('records those of the same moment in one write', async () => {
      const numbers = Array.from({ length: 50 }, (_, n) => n);
      await Promise.all(numbers.map((n) => settle(attempted(n))));
      expect(finished.map((batch) => batch.map(({ deliveryId }) => deliveryId))).toEqual([
        numbers.map((n) => due(n).deliveryId),
      ]);
    });

    test('resolves once it is recorded, and counts it once when the store was away', async () => {
      failures = 1;
      await settle(attempted(1));
      expect(finished).toHaveLength(2);
      expect(await countOf('posthorn_delivery_attempts_total')).toBe(1);
    });
  });

  test('the payloads of those that succeeded are erased, after they are recorded', async () => {
    failures = 1;
    await Promise.all([settle(attempted(1)), settle(attempted(2, 'timeout'))]);
    expect(erased).toEqual([due(1)]);
  });
});

interface Stored {
  status: DeliveryStatus;
  outcomes: string[];
  attemptCount: number;
}

/** A stored delivery with these attempts. */
function toDelivery(id: string, { status, outcomes, attemptCount }: Stored): Delivery {
  const { attempt, ...rest } = settled(id, attemptCount, 'timeout');
  const attempts = outcomes.map((outcome, index) => ({ ...attempt, number: index + 1, outcome }));
  const made = { attempts: attempts as Attempt[], attemptCount };
  return { ...rest, status, ...made, waiting: null, waitingSinceMs: null };
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

test('the first attempt of a delivery that has waited is an update, or an insert where its document is lost', async () => {
  const store = createMemoryDeliveries(new Map([['a', toDelivery('a', pending(0))]]));
  const inserted: string[] = [];
  const { insertAll } = store;
  store.insertAll = (deliveries) => {
    inserted.push(...deliveries.map(({ id }) => id));
    return insertAll(deliveries);
  };
  const batch = [settled('a', 1, 'timeout'), settled('b', 1, 'timeout')];
  const unfinished = await createRecordAttempts(store)(batch, new Set(['a', 'b']));
  expect([[...unfinished], inserted]).toEqual([['a', 'b'], ['b']]);
  expect(store.stored.get('a')?.attemptCount).toBe(1);
});

describe('recording what begins to wait', () => {
  const waits = (id: string, attemptNumber: number): SettledDelivery => ({
    ...settled(id, attemptNumber, 'aborted'),
    attempt: null,
    wait: { waiting: 'hold', attemptNumber },
  });

  async function waitingAfter(before: Record<string, Stored>, ...batch: SettledDelivery[]) {
    const store = createMemoryDeliveries(
      new Map(Object.entries(before).map(([id, stored]) => [id, toDelivery(id, stored)])),
    );
    const unfinished = await createRecordAttempts(store)(batch);
    expect([...unfinished]).toEqual([]);
    return [...store.stored].map(([id, { waiting, attemptCount }]) => [id, waiting, attemptCount]);
  }

  test('inserts it before its first attempt, and where its document is lost', async () => {
    expect(await waitingAfter({}, waits('a', 1), waits('b', 4))).toEqual([
      ['a', 'hold', 0],
      ['b', 'hold', 3],
    ]);
  });

  test('keeps the attempts and their number, also when the record is read again', async () => {
    const before = { a: pending(2), b: pending(0) };
    const again = [waits('a', 3), waits('b', 1), waits('a', 3)];
    expect(await waitingAfter(before, ...again)).toEqual([
      ['a', 'hold', 2],
      ['b', 'hold', 0],
    ]);
  });

  test('leaves a delivery alone that has gone on or has ended', async () => {
    const before = { a: pending(3), b: { ...pending(2), status: 'exhausted' as const } };
    expect(await waitingAfter(before, waits('a', 3), waits('b', 3))).toEqual([
      ['a', null, 3],
      ['b', null, 2],
    ]);
  });
});

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

describe('erase payloads', () => {
  let nowMs: number;
  /** The messages of each call of the store. */
  let asked: string[][];
  /** The messages that were noted again, by `note`. */
  let notedAgain: string[];
  /** The messages with several targets. */
  let large: Set<string>;
  let erase: ErasePayloads;

  beforeEach(() => {
    [nowMs, asked, notedAgain, large] = [0, [], [], new Set()];
    erase = createErasePayloads({
      erasure: {
        eraseOrNote(recorded) {
          const ids = recorded.map(({ messageId }) => messageId);
          asked.push(ids);
          return Promise.resolve(ids.filter((id) => large.has(id)));
        },
        note: (noted) =>
          Promise.resolve(void notedAgain.push(...noted.map(({ messageId }) => messageId))),
      },
      keepTryingWhileDraining: keepTrying,
      monotonicMs: () => nowMs,
    });
  });

  const dueOf = (messageId: string) => sampleDue({ messageId, erasesPayload: true });

  test('the store is asked once for the messages of apps that want it', async () => {
    await erase([dueOf('msg_1'), dueOf('msg_2'), sampleDue({ messageId: 'msg_3' })]);
    expect(asked).toEqual([['msg_1', 'msg_2']]);
  });

  test('the store is not asked for other messages', async () => {
    await erase([sampleDue()]);
    expect(asked).toEqual([]);
  });

  test('a message with several targets is looked at once, and noted once a second, well before it is checked', async () => {
    large.add('msg_1');
    expect(CHECK_AFTER_MS).toBeGreaterThan(2_500);
    for (; nowMs < 2_500; nowMs += 100) await erase([dueOf('msg_1'), dueOf('msg_2')]);
    const looks = asked.filter((ids) => ids.includes('msg_1'));
    expect([looks.length, asked.length]).toEqual([1, 25]);
    expect(notedAgain).toEqual(['msg_1', 'msg_1']);
  });

  test('only so many messages are remembered, and the others are noted again', async () => {
    const ids = Array.from({ length: 10_001 }, (_, n) => `msg_${n}`);
    large = new Set(ids);
    await erase(ids.map(dueOf));
    await erase(ids.map(dueOf));
    expect(asked[1]).toEqual(['msg_0']);
  });
});
