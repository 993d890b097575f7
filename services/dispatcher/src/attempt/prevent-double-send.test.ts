import { beforeEach, describe, expect, it, test } from '@jest/globals';
import { attemptIdOf } from '@posthorn/domain/ids.ts';
import { type Attempt, type RecordedDelivery, refOf } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  type AttemptHarnessOptions,
  createAttemptHarness,
  FOUND,
  NOW_MS,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { type CheckRecorded, createCheckRecorded } from './prevent-double-send.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const due = (dueAtMs: number, trigger: 'retry' | 'resend' = 'retry'): Buffer =>
  encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs, trigger });
const created = sampleRecord(
  {},
  { topic: 'created', value: encodeMessageCreated(REF, Buffer.from('{}')) },
);
const retry = sampleRecord({}, { topic: 'due', value: due(NOW_MS) });
const resend = sampleRecord({}, { topic: 'due', value: due(NOW_MS, 'resend') });
/** The record of the first attempt of a message that was accepted over ten seconds ago. */
function lateCopyOf(messageId: string): LogRecord {
  const ref = { ...REF, messageId, createdAtMs: NOW_MS - 10_001 };
  return sampleRecord(
    {},
    { topic: 'created', value: encodeMessageCreated(ref, Buffer.from('{}')) },
  );
}
const settledNow = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const DONE: AttemptHarnessOptions = { remaining: { kind: 'drop' } };

describe('an attempt that may have been read before', () => {
  it.each<[string, LogRecord]>([
    ['from a partition that changed hands', { ...created, isInherited: true }],
    ['from the slow lane', sampleRecord({}, { topic: 'slow', value: due(NOW_MS) })],
    ['from a deferral', sampleRecord({ 'turn-at': '1' }, { topic: 'due', value: due(NOW_MS) })],
    ['over ten seconds late', sampleRecord({}, { topic: 'due', value: due(NOW_MS - 10_001) })],
    ['of a message that was accepted over ten seconds ago', lateCopyOf('msg_1')],
  ])('is looked up, and not sent when it is recorded: %s', async (_what, record) => {
    const { attempt, loads, sent, settled } = createAttemptHarness(DONE);
    await attempt(record);
    expect([loads.recorded, sent, settled]).toEqual([1, [], []]);
  });

  it.each([
    ['before this process read its partition', -1, 1],
    ['less than five seconds after that, as clocks differ', 4_999, 1],
    ['later than that', 5_000, 0],
  ])(
    'is claimed and looked up when it is a retry that was due %s',
    async (_when, dueAfterMs, expected) => {
      const { attempt, loads } = createAttemptHarness();
      await attempt({ ...retry, ownedSinceMs: NOW_MS - dueAfterMs });
      expect([loads.claimed, loads.recorded]).toEqual([expected, expected]);
    },
  );

  it('is neither claimed nor looked up when it is a first attempt that was due before', async () => {
    const { attempt, loads } = createAttemptHarness();
    await attempt({ ...created, ownedSinceMs: NOW_MS + 1 });
    expect([loads.claimed, loads.recorded]).toEqual([0, 0]);
  });

  it('is sent when it is not recorded', async () => {
    const { attempt, loads, sent } = createAttemptHarness();
    await attempt({ ...created, isInherited: true });
    expect([loads.recorded, sent]).toEqual([1, [1]]);
  });

  it('is settled again, and not counted, when it is recorded as failed', async () => {
    const failed = { ...(await sendSuccessfully(sampleDue(), Buffer.alloc(0), FOUND)), number: 3 };
    const { attempt, sent, settled } = createAttemptHarness({
      remaining: { kind: 'publish_failure', attempt: failed },
    });
    const headers = { 'turn-at': '1', 'deferred-since': '1' };
    await attempt(sampleRecord(headers, { topic: 'due', value: due(NOW_MS) }));
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ attempt: failed, cancelReason: null, isRecorded: true }]);
    expect(settled).toMatchObject([{ headers: { requestId: 'req_1' } }]);
  });

  it.each([
    ['retry', retry],
    ['resend', resend],
  ])('waits for the end of its copy that is under way here: %s', async (_trigger, record) => {
    let finish: () => void = () => undefined;
    const around: AttemptHarnessOptions = {
      send: async (...given) => {
        await new Promise<void>((resolve) => (finish = resolve));
        around.remaining = { kind: 'drop' };
        return sendSuccessfully(...given);
      },
    };
    const { attempt, sent } = createAttemptHarness(around);
    const both = [attempt(record), attempt(record)];
    await settledNow();
    expect(sent).toEqual([3]);
    finish();
    await Promise.all(both);
    expect(sent).toEqual([3]);
  });

  it('waits for as long as the outcome of its copy cannot be recorded', async () => {
    let recorded: () => void = () => undefined;
    let outageFreeMs = 0;
    const options: AttemptHarnessOptions = {
      outageFreeMs: () => outageFreeMs,
      settling: () => new Promise((resolve) => (recorded = resolve)),
    };
    const { attempt, sent } = createAttemptHarness(options);
    const both = [attempt(retry)];
    await settledNow();
    outageFreeMs = 600_000;
    both.push(attempt(retry));
    await settledNow();
    expect(sent).toEqual([3]);
    options.remaining = { kind: 'drop' };
    recorded();
    await Promise.all(both);
    expect(sent).toEqual([3]);
  });

  describe('while its copy has waited for its reservation for ten minutes', () => {
    /** Attempts both copies, the second after ten minutes, and returns how often a request was made. */
    async function requestsOf(isFirstOurs: boolean): Promise<number> {
      let outageFreeMs = 0;
      let endWait: () => void = () => undefined;
      const reservation = new Promise<void>((resolve) => (endWait = resolve));
      const options: AttemptHarnessOptions = {
        outageFreeMs: () => outageFreeMs,
        loadWebhook: () => reservation.then(() => FOUND),
        send: (...given) => {
          options.remaining = { kind: 'drop' };
          return sendSuccessfully(...given);
        },
      };
      const { attempt, sent, loads } = createAttemptHarness(options);
      const all = [attempt(retry, () => isFirstOurs)];
      outageFreeMs = 600_000;
      // What a claim of the copy would do is done when the claim after it has been looked up.
      all.push(attempt(retry), attempt({ ...created, isInherited: true }));
      await eventually('the look-up', () => loads.recorded > 0);
      endWait();
      // The one whose partition has gone is left to whoever reads it next.
      await Promise.allSettled(all);
      return sent.filter((number) => number === 3).length;
    }

    it('waits for it', async () => {
      expect(await requestsOf(true)).toBe(1);
    });

    it('goes before it when the partition of that one has gone, which is not made then', async () => {
      expect(await requestsOf(false)).toBe(1);
    });
  });

  it('is looked up when this process has worked on it a moment ago', async () => {
    const { attempt, loads, sent } = createAttemptHarness(DONE);
    await attempt(retry);
    expect([loads.recorded, sent]).toEqual([0, [3]]);
    await attempt({ ...retry, offset: retry.offset + 1 });
    expect([loads.recorded, sent]).toEqual([1, [3]]);
  });
});

describe('the copies of a backlog that was published twice', () => {
  /** The harness remembers at most 2,000 ids. */
  const BETWEEN = 2_001;

  it('are not sent, however many attempts are between them', async () => {
    const options: AttemptHarnessOptions = {};
    const { attempt, sent, settled } = createAttemptHarness(options);
    await attempt(lateCopyOf('msg_0'));
    for (let n = 1; n <= BETWEEN; n += 1) await attempt(lateCopyOf(`msg_${n}`));
    expect([sent.length, settled.length]).toEqual([BETWEEN + 1, BETWEEN + 1]);
    options.remaining = { kind: 'drop' };
    await attempt(lateCopyOf('msg_0'));
    expect([sent.length, settled.length]).toEqual([BETWEEN + 1, BETWEEN + 1]);
  });

  it('have a failure published that may not have been before', async () => {
    const failed = await sendSuccessfully(sampleDue(), Buffer.alloc(0), FOUND);
    const { attempt, sent, settled } = createAttemptHarness({
      remaining: { kind: 'publish_failure', attempt: failed },
    });
    await attempt(lateCopyOf('msg_0'));
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ attempt: failed, isRecorded: true }]);
  });
});

describe('any other attempt', () => {
  it('is sent without a look-up', async () => {
    const { attempt, loads, sent } = createAttemptHarness(DONE);
    await attempt(created);
    await attempt(retry);
    expect([loads.recorded, sent]).toEqual([0, [1, 3]]);
  });

  it('is looked up when it is a resend', async () => {
    const { attempt, loads, sent } = createAttemptHarness(DONE);
    await attempt(resend);
    expect([loads.recorded, sent]).toEqual([1, []]);
  });
});

it('lets a copy of an attempt go on when the work on the first has failed', async () => {
  let failures = 1;
  const { attempt, sent } = createAttemptHarness({
    send: (...given) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new Error('a fault')) : sendSuccessfully(...given);
    },
  });
  await expect(attempt(resend)).rejects.toThrow('a fault');
  await attempt(resend);
  expect(sent).toEqual([3, 3]);
});

describe('check recorded', () => {
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
      expect(markReads).toEqual([[...new Set(given.map(({ deliveryId }) => deliveryId))]]);
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
});
