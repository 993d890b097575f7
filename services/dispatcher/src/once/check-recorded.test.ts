import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Attempt, RecordedDelivery } from '@posthorn/domain/message/delivery.ts';
import { attemptIdOf } from '@posthorn/domain/ids/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createCheckRecorded, type CheckRecorded } from './check-recorded.ts';

/** What the stores hold. */
let recorded: Map<string, RecordedDelivery>;
let askedNumbers: Map<string, number>;
/** What they were asked. */
let deliveryReads: (readonly string[])[];
let markReads: (readonly string[])[];
/** How many reads fail before one succeeds. */
let failures: number;
let check: CheckRecorded;

beforeEach(() => {
  recorded = new Map();
  askedNumbers = new Map();
  [deliveryReads, markReads, failures] = [[], [], 0];
  const answer = <T>(value: T): Promise<T> => {
    failures -= 1;
    return failures >= 0 ? Promise.reject(new Error('MongoDB is away')) : Promise.resolve(value);
  };
  check = createCheckRecorded({
    keepTrying,
    deliveries: {
      recordedOf(ids) {
        deliveryReads.push(ids);
        return answer(recorded);
      },
    },
    marks: {
      askedNumbers(ids) {
        markReads.push(ids);
        return answer(askedNumbers);
      },
    },
  });
});

describe('an attempt of the schedule', () => {
  const due = sampleDue({ attemptNumber: 2, trigger: 'retry' });
  const { deliveryId } = due;

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
    recorded.set(deliveryId, { status, attemptCount, lastAttempt });
    return lastAttempt;
  }

  test('is to be sent when nothing is recorded of its delivery', async () => {
    expect(await check(due)).toEqual({ kind: 'send' });
  });

  test('is to be sent when only an earlier attempt is recorded', async () => {
    record('pending', 1);
    expect(await check(due)).toEqual({ kind: 'send' });
  });

  test.each([
    ['delivered', 2],
    ['exhausted', 7],
    ['cancelled', 1],
    ['pending', 3],
  ] as const)('is dropped when its delivery is %s after attempt %i', async (status, number) => {
    record(status, number);
    expect(await check(due)).toEqual({ kind: 'drop' });
  });

  test('has its failure published again when it is the last one recorded', async () => {
    const attempt = record('pending', 2);
    expect(await check(due)).toEqual({ kind: 'publish_failure', attempt });
  });
});

describe('a resend', () => {
  const resend = (n: number, attemptNumber = 8): DueAttempt => {
    const messageId = `msg_${String(n).padStart(26, '0')}`;
    return sampleDue({ messageId, attemptNumber, trigger: 'resend' });
  };

  test('is to be sent while exactly its attempt is asked for, and dropped otherwise', async () => {
    askedNumbers.set(resend(1).deliveryId, 8).set(resend(2).deliveryId, 9);
    const given = [resend(1), resend(2), resend(3), resend(1, 7)];
    const remaining = await Promise.all(given.map(check));
    expect(remaining.map(({ kind }) => kind)).toEqual(['send', 'drop', 'drop', 'drop']);
    expect(markReads).toEqual([given.map(({ deliveryId }) => deliveryId)]);
  });

  test('is decided by its mark, whatever is recorded of its delivery', async () => {
    askedNumbers.set(resend(1).deliveryId, 8);
    expect(await check(resend(1))).toEqual({ kind: 'send' });
    expect(deliveryReads).toEqual([]);
  });

  test('waits while the store is away', async () => {
    askedNumbers.set(resend(1).deliveryId, 8);
    failures = 1;
    expect(await check(resend(1))).toEqual({ kind: 'send' });
    expect(markReads).toHaveLength(2);
  });
});
