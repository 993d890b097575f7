import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { FinishedResend } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { Registry } from 'prom-client';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { createDispatcherMetrics } from '../dispatcher-metrics.ts';
import { createResends, type Resends } from './settle-resend.ts';

const NOW_MS = 1_700_000_000_000;

/** Which attempt of which delivery is asked for. */
let asked: Map<string, number>;
let looks: (readonly string[])[];
let finished: FinishedResend[][];
/** How many calls of the store fail before one succeeds. */
let failures: number;
let registry: Registry;
let resends: Resends;

beforeEach(() => {
  [looks, finished, failures, registry] = [[], [], 0, new Registry()];
  asked = new Map();
  const answer = <T>(value: T): Promise<T> => {
    failures -= 1;
    return failures >= 0 ? Promise.reject(new Error('MongoDB is away')) : Promise.resolve(value);
  };
  resends = createResends({
    marks: {
      askedNumbers(ids) {
        looks.push(ids);
        return answer(asked);
      },
      finish(batch) {
        finished.push([...batch]);
        return answer(undefined);
      },
    },
    metrics: createDispatcherMetrics(registry),
    logger: createLogger('test', 'silent'),
    nowMs: () => NOW_MS,
  });
});

function due(n: number, attemptNumber = 8): DueAttempt {
  const messageId = `msg_${String(n).padStart(26, '0')}`;
  return sampleDue({ messageId, attemptNumber, trigger: 'resend' });
}

function made(number: number, outcome: Attempt['outcome']): Attempt {
  return {
    id: `att_${number}`,
    number,
    trigger: 'resend',
    outcome,
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAtMs: NOW_MS,
    durationMs: 20,
  };
}

async function countOf(name: string): Promise<number> {
  const metric = await registry.getSingleMetric(name)?.get();
  return (metric?.values ?? []).reduce((sum, { value }) => sum + value, 0);
}

describe('the record of a resend', () => {
  test('is wanted when exactly its attempt is asked for', async () => {
    asked.set(due(1).deliveryId, 8).set(due(2).deliveryId, 9);
    const given = [due(1), due(2), due(3), due(1, 7)];
    const done: number[] = [];
    const works = given.map((each, n) =>
      resends.once(each, () => {
        done.push(n);
        return Promise.resolve();
      }),
    );
    await Promise.all(works);
    expect(done).toEqual([0]);
    expect(looks).toEqual([given.map(({ deliveryId }) => deliveryId)]);
  });

  test('waits while the store is away', async () => {
    asked.set(due(1).deliveryId, 8);
    failures = 1;
    let works = 0;
    await resends.once(due(1), () => Promise.resolve(void (works += 1)));
    expect([works, looks.length]).toEqual([1, 2]);
  });

  test('and its copies make one request, however many are read at once', async () => {
    asked.set(due(1).deliveryId, 8);
    let requests = 0;
    const work = async (): Promise<void> => {
      requests += 1;
      await new Promise((resolve) => setImmediate(resolve));
    };
    await Promise.all(Array.from({ length: 30 }, () => resends.once(due(1), work)));
    expect(requests).toBe(1);
  });

  test('is taken up again when the work on its twin has failed', async () => {
    asked.set(due(1).deliveryId, 8);
    await expect(resends.once(due(1), () => Promise.reject(new Error('x')))).rejects.toThrow('x');
    let requests = 0;
    await resends.once(due(1), () => Promise.resolve(void (requests += 1)));
    expect(requests).toBe(1);
  });
});

describe('the one attempt of a resend', () => {
  test.each<Attempt['outcome']>(['success', 'http_5xx'])(
    'is recorded and counted: %s',
    async (outcome) => {
      const attempt = made(8, outcome);
      await resends.settle({ due: due(1), attempt, headers: {} });
      const deliveryId = due(1).deliveryId;
      expect(finished).toEqual([[{ deliveryId, attemptNumber: 8, attempt, atMs: NOW_MS }]]);
      expect(await countOf('posthorn_delivery_attempts_total')).toBe(1);
      expect(await countOf('posthorn_deliveries_finished_total')).toBe(
        outcome === 'success' ? 1 : 0,
      );
    },
  );

  test('that was not made is recorded without an attempt, and not counted', async () => {
    await resends.settle({ due: due(1), reason: 'webhook_disabled' });
    expect(finished.flat()).toMatchObject([{ attemptNumber: 8, attempt: null }]);
    expect(await countOf('posthorn_delivery_attempts_total')).toBe(0);
    expect(await countOf('posthorn_deliveries_finished_total')).toBe(0);
  });

  test('is recorded together with others, in one write', async () => {
    const all = Array.from({ length: 50 }, (_, n) => due(n));
    await Promise.all(
      all.map((each) => resends.settle({ due: each, attempt: made(8, 'success'), headers: {} })),
    );
    expect(finished.map((batch) => batch.map(({ deliveryId }) => deliveryId))).toEqual([
      all.map(({ deliveryId }) => deliveryId),
    ]);
  });

  test('is not done before it is recorded, and counted once', async () => {
    failures = 1;
    await resends.settle({ due: due(1), attempt: made(8, 'success'), headers: {} });
    expect(finished).toHaveLength(2);
    expect(await countOf('posthorn_delivery_attempts_total')).toBe(1);
  });
});
