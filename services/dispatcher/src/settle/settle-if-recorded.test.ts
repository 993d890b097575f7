import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import { attemptIdOf } from '@posthorn/domain/ids.ts';
import type { RecordedDelivery } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { createMadeBefore, type MadeBefore } from './settle-if-recorded.ts';
import type { Settled } from './settle-delivery.ts';

const due = sampleDue({ attemptNumber: 2, trigger: 'retry' });
const { deliveryId } = due;
const headers = { requestId: 'req_1', 'deferred-since': '1' };

let recorded: Map<string, RecordedDelivery>;
let settled: Settled[];
let madeBefore: MadeBefore;

beforeEach(() => {
  recorded = new Map();
  settled = [];
  madeBefore = createMadeBefore({
    deliveries: { recordedOf: () => Promise.resolve(recorded) },
    settle: (each) => {
      settled.push(each);
      return Promise.resolve();
    },
  });
});

function record(status: RecordedDelivery['status'], attemptCount: number): Attempt {
  const lastAttempt: Attempt = {
    id: attemptIdOf(deliveryId, attemptCount),
    number: attemptCount,
    trigger: 'retry',
    outcome: 'http_5xx',
    statusCode: 500,
    response: '',
    responseHeaders: [],
    startedAtMs: 5,
    durationMs: 1,
  };
  recorded = new Map([[deliveryId, { status, attemptCount, lastAttempt }]]);
  return lastAttempt;
}

describe('an attempt that may have been made before', () => {
  it('was not when nothing is recorded of its delivery', async () => {
    expect(await madeBefore(due, headers)).toBe(false);
  });

  it('was not when only an earlier one is recorded', async () => {
    record('pending', 1);
    expect(await madeBefore(due, headers)).toBe(false);
  });

  it.each([
    ['delivered', 2],
    ['exhausted', 7],
    ['cancelled', 1],
    ['pending', 3],
  ] as const)('was, with all that follows, when its delivery is %s after %i', async (status, n) => {
    record(status, n);
    expect(await madeBefore(due, headers)).toBe(true);
    expect(settled).toEqual([]);
  });

  it('is settled again when it failed: its failure may not have been published', async () => {
    const attempt = record('pending', 2);
    expect(await madeBefore(due, headers)).toBe(true);
    const lasting = { requestId: 'req_1' };
    expect(settled).toEqual([{ due, attempt, headers: lasting, isKnown: true }]);
  });

  it('leaves it to the mark of a resend whether that was made', async () => {
    record('delivered', 2);
    expect(await madeBefore(sampleDue({ ...due, trigger: 'resend' }), headers)).toBe(false);
  });
});
