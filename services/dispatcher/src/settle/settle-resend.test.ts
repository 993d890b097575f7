import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/message/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { FinishedResend } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { Registry } from 'prom-client';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { createDispatcherMetrics } from '../dispatcher-metrics.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import type { Settle, SettledAttempt } from './settle-delivery.ts';
import { createSettleResend } from './settle-resend.ts';

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
    count: () => undefined,
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
