import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { RecordedDelivery } from '@posthorn/platform/mongo/deliveries.ts';
import { sampleDue } from '../../../test/support/sample-record.ts';
import { createMadeBefore, type MadeBefore } from './made-before.ts';
import type { Settled } from './settle-delivery.ts';

const due = sampleDue({ attemptNumber: 2, trigger: 'retry' });
const deliveryId = deliveryIdOf(due.messageId, due.webhookId);
const attemptId = attemptIdOf(deliveryId, 2);
const headers = { requestId: 'req_1' };

let recorded: Map<string, RecordedDelivery>;
let running: Set<string>;
let isRedisAway: boolean;
let waits: number;
let settled: Settled[];
let madeBefore: MadeBefore;

beforeEach(() => {
  recorded = new Map();
  running = new Set();
  [isRedisAway, waits, settled] = [false, 0, []];
  madeBefore = createMadeBefore({
    deliveries: { recordedOf: () => Promise.resolve(recorded) },
    running: {
      among: () => (isRedisAway ? Promise.reject(new Error('away')) : Promise.resolve(running)),
    },
    settle: (each) => {
      settled.push(each);
      return Promise.resolve();
    },
    // The former owner ends and records its attempt while this one waits.
    wait: () => {
      waits += 1;
      running = new Set();
      record('delivered', 2);
      return Promise.resolve();
    },
  });
});

function record(status: RecordedDelivery['status'], attemptCount: number): Attempt {
  const lastAttempt: Attempt = {
    ...{ id: attemptIdOf(deliveryId, attemptCount), number: attemptCount, trigger: 'retry' },
    ...{ outcome: 'http_5xx', statusCode: 500, response: '', responseHeaders: [] },
    ...{ startedAtMs: 5, durationMs: 1 },
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
    expect(settled).toEqual([{ due, attempt, headers }]);
  });

  it('is waited for while its former owner works on it', async () => {
    running.add(attemptId);
    expect(await madeBefore(due, headers)).toBe(true);
    expect(waits).toBe(1);
  });

  it('goes by what is recorded alone when Redis is away', async () => {
    isRedisAway = true;
    expect(await madeBefore(due, headers)).toBe(false);
    record('delivered', 2);
    expect(await madeBefore(due, headers)).toBe(true);
  });

  it('leaves it to the mark of a resend whether that was made', async () => {
    record('delivered', 2);
    expect(await madeBefore(sampleDue({ ...due, trigger: 'resend' }), headers)).toBe(false);
  });
});
