import type { DeliveryStatus, Ending, ExhaustReason } from '@posthorn/domain/delivery/delivery.ts';
import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  encodeDeliveryFailed,
  encodeDisabling,
  type DeliveryFailed,
} from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { DEFAULT_RETRY_DELAYS, retryScheduleSchema } from '@posthorn/domain/delivery/schedule.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { OperatorIncident } from '@posthorn/domain/operator-events.ts';
import type { DisableWebhook } from './disable-webhook.ts';
import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import type { Exhaustion } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { Registry } from 'prom-client';
import { collectLogLines, type LogLines } from '../../../test/support/sources/log-lines.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { createParkFailure } from './park-failure.ts';
import { createRetryMetrics, type RetryMetrics } from './metrics.ts';

const ENDED_MS = 1_700_000_000_000;
const DEFAULT = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);

let published: OutgoingRecord[] = [];
let deadLetters: [LogRecord, string, string][] = [];
let exhaustions: Exhaustion[] = [];
/** The sequences that are due. */
let due: string[] = [];
let disablings: Parameters<DisableWebhook>[] = [];
let incidents: OperatorIncident[] = [];
/** Whether the webhook is as it was for the attempt. */
let isUnchanged = true;
let isStillPending = true;
let status: DeliveryStatus = 'exhausted';
let onPublish: () => Promise<void>;
let metrics: RetryMetrics;
let log: LogLines;

beforeEach(() => {
  [published, deadLetters, exhaustions, due] = [[], [], [], []];
  [disablings, incidents, isUnchanged] = [[], [], true];
  isStillPending = true;
  status = 'exhausted';
  onPublish = () => Promise.resolve();
  metrics = createRetryMetrics(new Registry(), [5_000], () => 0);
  log = collectLogLines();
});

function parkWith(schedule: readonly number[] = DEFAULT) {
  const unused = () => Promise.reject(new Error('not used here'));
  return createParkFailure({
    keepTrying,
    schedule,
    parkedByDelayMs: topicNames('p.', schedule, [5_000]).parkedByDelayMs,
    metrics,
    records: {
      publish: (records) => {
        published.push(...records);
        return onPublish();
      },
      consume: unused,
      close: unused,
      isConnected: () => true,
    },
    sequences: { makeDue: (ids) => Promise.resolve(void due.push(...ids)) },
    deliveries: {
      exhaust: (exhaustion) => {
        exhaustions.push(exhaustion);
        return Promise.resolve(isStillPending);
      },
      statesOf: ([id = '']) => Promise.resolve(new Map([[id, { status, attemptCount: 7 }]])),
    },
    deadLetters: {
      put: (...letter) => {
        deadLetters.push(letter);
        return Promise.resolve();
      },
    },
    disableWebhook(...call) {
      disablings.push(call);
      return Promise.resolve(isUnchanged);
    },
    report: (incident) => void incidents.push(incident),
    logger: log.logger,
    nowMs: () => 77,
  });
}

const FAILED = {
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: 'app_1',
  createdAtMs: 1,
  attemptNumber: 1,
  endedAtMs: ENDED_MS,
  outcome: 'http_5xx',
  statusCode: 503,
};

function failure(attemptNumber: number, changes: Partial<DeliveryFailed> = {}): LogRecord {
  return recordOf(encodeDeliveryFailed({ ...FAILED, attemptNumber, ...changes }));
}

function recordOf(value: Buffer): LogRecord {
  const headers = { requestId: 'request-1' };
  const place = {
    topic: 'failed',
    partition: 3,
    offset: 9,
    isInherited: false,
    stored: { key: null, value: null, headers: {} },
    ownedSinceMs: 0,
    timestampMs: 0,
  };
  return { ...place, key: 'wh_1', value, headers };
}

describe('parking a failure', () => {
  test.each([
    [1, 'p.retry.5s', 5_000],
    [2, 'p.retry.5m', 300_000],
    [3, 'p.retry.30m', 1_800_000],
    [4, 'p.retry.2h', 7_200_000],
    [5, 'p.retry.5h', 18_000_000],
    [6, 'p.retry.10h', 36_000_000],
  ])(
    'of attempt %d writes the next one to %s, due %d ms after its end',
    async (number, topic, delayMs) => {
      await parkWith()(failure(number));
      const [record] = published;
      expect(record).toMatchObject({ topic, key: 'wh_1' });
      expect(record?.headers).toEqual({
        requestId: 'request-1',
        'due-at': String(ENDED_MS + delayMs),
      });
      expect(decodeRetryDue(record?.value ?? Buffer.alloc(0))).toMatchObject({
        messageId: 'msg_1',
        webhookId: 'wh_1',
        companyId: 'comp_1',
        appId: 'app_1',
        attemptNumber: number + 1,
        dueAtMs: ENDED_MS + delayMs,
      });
      expect([deadLetters, exhaustions]).toEqual([[], []]);
    },
  );

  test('uses one topic for steps of equal delay', async () => {
    const park = parkWith([1_000, 60_000, 1_000]);
    await Promise.all([park(failure(1)), park(failure(3))]);
    expect(published.map(({ topic }) => topic)).toEqual(['p.retry.1s', 'p.retry.1s']);
  });

  test('resolves only when Kafka has the record', async () => {
    let acknowledge: () => void = () => undefined;
    const parked = new Promise<void>((asked) => {
      onPublish = () => {
        asked();
        return new Promise((resolve) => (acknowledge = resolve));
      };
    });
    let isDone = false;
    const parking = parkWith()(failure(1)).then(() => (isDone = true));
    await parked;
    await new Promise(setImmediate);
    expect(isDone).toBe(false);
    acknowledge();
    expect(await parking).toBe(true);
  });
});

describe('the failure of the last attempt', () => {
  test('exhausts the delivery and writes a dead letter with the reason', async () => {
    const record = failure(7);
    await parkWith()(record);
    const id: unknown = expect.stringMatching(/^dlv_/);
    expect(exhaustions).toEqual([{ id, attemptCount: 7, reason: null, atMs: 77 }]);
    expect(deadLetters).toEqual([
      [record, 'schedule_exhausted', 'attempt 7 ended http_5xx with status 503'],
    ]);
    expect(published).toEqual([]);
    expect((await metrics.finished.get()).values).toEqual([
      { labels: { result: 'exhausted' }, value: 1 },
      { labels: { result: 'cancelled' }, value: 0 },
    ]);
    expect(log.lines).toMatchObject([
      { messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_1', msg: 'delivery exhausted' },
    ]);
  });

  test.each<[Ending, ExhaustReason | null, string]>([
    ['gone', 'gone', 'gone'],
    ['not_retryable', 'not_retryable', 'not_retryable'],
    ['aborted', 'aborted', 'aborted'],
    ['max_attempts', null, 'schedule_exhausted'],
  ])('may come before the end of the schedule: %s', async (ending, reason, letter) => {
    await parkWith()(failure(2, { ending }));
    expect(exhaustions).toMatchObject([{ attemptCount: 2, reason }]);
    expect(deadLetters).toMatchObject([[expect.anything(), letter, expect.anything()]]);
    expect(published).toEqual([]);
  });

  test('is not one that only a later version knows', async () => {
    await parkWith()(failure(2, { ending: 'of a later version' as Ending }));
    expect([published.length, exhaustions]).toEqual([1, []]);
  });

  test('is counted once when its record is read twice', async () => {
    const park = parkWith();
    await park(failure(7, { outcome: 'timeout', statusCode: null }));
    isStillPending = false;
    await park(failure(7, { outcome: 'timeout', statusCode: null }));
    expect((await metrics.finished.get()).values).toEqual([
      { labels: { result: 'exhausted' }, value: 1 },
      { labels: { result: 'cancelled' }, value: 0 },
    ]);
    expect(deadLetters[0]?.[2]).toBe('attempt 7 ended timeout with status none');
  });
});

test('the last failure of a delivery with an ordering key makes its sequence due, also when it was delivered meanwhile', async () => {
  await parkWith([])(failure(1, { orderingKey: 'order-1' }));
  [isStillPending, status] = [false, 'delivered'];
  await parkWith([])(failure(1, { orderingKey: 'order-2' }));
  await parkWith([])(failure(1));
  expect(due).toEqual([sequenceIdOf('wh_1', 'order-1'), sequenceIdOf('wh_1', 'order-2')]);
});

test('the last failure of a delivery that a resend has delivered makes no dead letter', async () => {
  isStillPending = false;
  status = 'delivered';
  await parkWith()(failure(7));
  expect(deadLetters).toEqual([]);
});

describe('the record of a response that disables its webhook', () => {
  const disabling = { ...FAILED, reason: 'gone', changedAtMs: 5 } as const;
  const version = { id: 'wh_1', companyId: 'comp_1', changedAtMs: 5 };

  test('does that, tells the operator, and neither parks nor ends anything', async () => {
    const success = { attemptNumber: 7, outcome: 'success', statusCode: 200 };
    await parkWith()(recordOf(encodeDisabling({ ...disabling, ...success })));
    expect(disablings).toEqual([[version, 'gone']]);
    expect(incidents).toMatchObject([{ type: 'endpoint.disabled', webhookId: 'wh_1' }]);
    expect([published, exhaustions, deadLetters]).toEqual([[], [], []]);
  });

  test('tells nobody when a client has changed the webhook since', async () => {
    isUnchanged = false;
    await parkWith()(recordOf(encodeDisabling(disabling)));
    expect([disablings.length, incidents]).toEqual([1, []]);
  });
});

describe('an unreadable record', () => {
  test.each(['', 'null', '{"version":2}'])('becomes a dead letter: %j', async (text) => {
    const record = recordOf(Buffer.from(text));
    await parkWith()(record);
    expect(deadLetters).toEqual([[record, 'unreadable_record', expect.any(String)]]);
    expect([published, exhaustions]).toEqual([[], []]);
  });
});
