import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Cancellation, DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { delayTopicsAmong } from '@posthorn/domain/records/topics.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { WebhookState } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import {
  createLatestRelease,
  createMarkBacklogs,
  createOverdueWatch,
  createReleaseParked,
  HORIZON_MS,
  type LatestRelease,
  type MarkBacklogs,
  pauseMsFor,
  waitUntilDue,
} from './release-parked.ts';
import { createRetryMetrics } from './metrics.ts';

describe('release parked', () => {
  const DUE_MS = 1_700_000_000_000;
  const DELAY_TOPICS = delayTopicsAmong('', ['retry.5s', 'deferred.5s']);

  let published: OutgoingRecord[][] = [];
  let deadLetters: [LogRecord, string][] = [];
  let cancelled: Cancellation[] = [];
  const states = new Map<string, { status: DeliveryStatus; attemptCount: number }>();
  const webhooks = new Map<string, WebhookState>();
  let backlogs: string[] = [];
  let nowMs: () => number;
  let earlierMs: () => number;
  let onPublish: () => Promise<void>;
  let registry: Registry;

  beforeEach(() => {
    registry = new Registry();
    [published, deadLetters] = [[], []];
    [cancelled, backlogs] = [[], []];
    states.clear();
    webhooks.clear();
    webhooks.set('wh_1', {
      disabled: false,
      cancelBeforeMs: null,
      hasRateLimit: false,
      deferredAtMs: null,
      ordering: 'none' as const,
    });
    nowMs = () => DUE_MS;
    earlierMs = () => nowMs();
    onPublish = () => Promise.resolve();
  });

  function createRelease(isOurs = (): boolean => true): (record: LogRecord) => Promise<void> {
    const { handle } = createReleaseParked({
      keepTrying,
      retryDueTopic: 'retry-due',
      metrics: createRetryMetrics(registry, [5_000], () => 0),
      delayTopics: DELAY_TOPICS,
      logger: createLogger('test', 'silent'),
      records: {
        publish: (records) => {
          published.push([...records]);
          return onPublish();
        },
      },
      deliveries: {
        statesOf: () => Promise.resolve(states),
        cancelPending: (cancellations) => {
          cancelled.push(...cancellations);
          return Promise.resolve({ matched: cancellations.length });
        },
      },
      webhooks: {
        statesOf: () => Promise.resolve(webhooks),
        markDeferred: (ids) => Promise.resolve(void backlogs.push(...ids)),
      },
      reconcileAfterMs: 86_400_000,
      deadLetters: {
        put: (record, reason) => {
          deadLetters.push([record, reason]);
          return Promise.resolve();
        },
      },
      nowMs: () => nowMs(),
      earlierMs: () => earlierMs(),
      monotonicMs: () => 0,
    });
    return (record) => handle(record, isOurs);
  }

  function parked(
    messageId: string,
    attemptNumber: number,
    offset = 0,
    dueAtMs = DUE_MS,
  ): LogRecord {
    const value = encodeRetryDue({
      messageId,
      webhookId: 'wh_1',
      companyId: 'comp_1',
      appId: null,
      createdAtMs: 1,
      attemptNumber,
      dueAtMs,
    });
    const headers = { requestId: 'request-1', 'due-at': String(dueAtMs) };
    const place = {
      topic: 'retry.5s',
      partition: 0,
      offset,
      isInherited: false,
      stored: { key: null, value: null, headers: {} },
      ownedSinceMs: 0,
      timestampMs: 0,
    };
    return { ...place, key: 'wh_1', value, headers };
  }

  const stateOf = (messageId: string, status: DeliveryStatus, attemptCount: number) =>
    states.set(deliveryIdOf(messageId, 'wh_1'), { status, attemptCount });

  describe('releasing a parked record', () => {
    test('publishes it unchanged to retry-due', async () => {
      stateOf('msg_1', 'pending', 1);
      const record = parked('msg_1', 2);
      await createRelease()(record);
      const { key, value, headers } = record;
      expect(published).toEqual([[{ topic: 'retry-due', key, value, headers }]]);
    });

    test('cancels it when its message has expired by both clocks, and not before', async () => {
      stateOf('msg_1', 'pending', 1);
      webhooks.set('wh_1', { disabled: false } as never);
      const record = parked('msg_1', 2);
      const fields = JSON.parse(String(record.value)) as object;
      const value = Buffer.from(JSON.stringify({ ...fields, expiresAtMs: DUE_MS - 1 }));
      const release = createRelease();
      earlierMs = () => DUE_MS - 3_600_000;
      await release({ ...record, value });
      expect([published.flat().length, cancelled]).toEqual([1, []]);
      earlierMs = () => DUE_MS;
      await release({ ...record, value });
      expect(cancelled).toMatchObject([{ reason: 'expired' }]);
    });

    test('publishes it when its delivery is not recorded', async () => {
      await createRelease()(parked('msg_1', 2));
      expect(published.flat()).toHaveLength(1);
    });

    test('publishes an attempt once that was parked twice', async () => {
      stateOf('msg_1', 'pending', 1);
      const release = createRelease();
      const records = [parked('msg_1', 2, 0), parked('msg_1', 2, 1), parked('msg_2', 2, 2)];
      await Promise.all(records.map(release));
      const [batch = []] = published;
      expect([published.length, batch.map(({ value }) => value)]).toEqual([
        1,
        [records[0]?.value, records[2]?.value],
      ]);
    });

    test('leaves it to another process when its partition has gone there', async () => {
      stateOf('msg_1', 'pending', 1);
      const leave = createRelease(() => false);
      await expect(leave(parked('msg_1', 2))).rejects.toThrow(StoppedError);
      expect(published).toEqual([]);
    });

    test('leaves it to another process when its partition has gone there during an outage', async () => {
      let [isAway, isOurs] = [true, true];
      onPublish = () => {
        if (!isAway) return Promise.resolve();
        [isAway, isOurs] = [false, false];
        return Promise.reject(new Error('Kafka is away'));
      };
      const release = createRelease(() => isOurs);
      await expect(release(parked('msg_1', 2))).rejects.toThrow(StoppedError);
      expect(published.at(-1)).toEqual([]);
    });

    test('drops it when its delivery has moved on', async () => {
      stateOf('msg_1', 'pending', 2);
      stateOf('msg_2', 'delivered', 1);
      stateOf('msg_3', 'cancelled', 1);
      stateOf('msg_4', 'exhausted', 7);
      const release = createRelease();
      await Promise.all(['msg_1', 'msg_2', 'msg_3', 'msg_4'].map((id) => release(parked(id, 2))));
      expect([published.flat(), deadLetters, backlogs]).toEqual([[], [], []]);
    });

    test('cancels its delivery instead when its webhook is deleted or disabled', async () => {
      for (const id of ['msg_1', 'msg_2']) stateOf(id, 'pending', 1);
      webhooks.delete('wh_1');
      const release = createRelease();
      await release(parked('msg_1', 2));
      webhooks.set('wh_1', {
        disabled: true,
        cancelBeforeMs: null,
        hasRateLimit: false,
        deferredAtMs: null,
        ordering: 'none' as const,
      });
      await release(parked('msg_2', 2));
      expect([published.flat(), cancelled]).toEqual([
        [],
        [
          { id: deliveryIdOf('msg_1', 'wh_1'), reason: 'webhook_deleted', atMs: DUE_MS },
          { id: deliveryIdOf('msg_2', 'wh_1'), reason: 'webhook_disabled', atMs: DUE_MS },
        ],
      ]);
    });

    test('publishes a deferred resend whatever the status of its delivery', async () => {
      stateOf('msg_1', 'exhausted', 7);
      const retry = parked('msg_1', 8);
      const value = Buffer.from(
        JSON.stringify({ ...JSON.parse(retry.value.toString()), trigger: 'resend' }),
      );
      await createRelease()({ ...retry, value });
      expect(published.flat()).toHaveLength(1);
    });

    test('makes the same checks for a deferred record', async () => {
      for (const id of ['msg_1', 'msg_2', 'msg_3']) stateOf(id, 'pending', 1);
      stateOf('msg_2', 'delivered', 2);
      const release = createRelease();
      const due = { ...parked('msg_1', 2), topic: 'deferred.5s' };
      due.headers = { ...due.headers, 'turn-at': '1' };
      await Promise.all([release(due), release({ ...parked('msg_2', 2), topic: 'deferred.5s' })]);
      webhooks.delete('wh_1');
      await release({ ...parked('msg_3', 2), topic: 'deferred.5s' });
      const { key, value, headers } = due;
      expect(published.flat()).toEqual([{ topic: 'retry-due', key, value, headers }]);
      expect(backlogs).toEqual(['wh_1']);
      expect(cancelled).toMatchObject([{ id: deliveryIdOf('msg_3', 'wh_1') }]);
    });

    test('observes the lateness of each kind', async () => {
      nowMs = () => DUE_MS + 2_000;
      const release = createRelease();
      await release(parked('msg_1', 2));
      await release({ ...parked('msg_2', 2), topic: 'deferred.5s' });
      await release({ ...parked('msg_3', 2), topic: 'deferred.5s' });
      const text = await registry.metrics();
      expect(text).toContain('retry_lateness_seconds_count{delay="5s",kind="retry"} 1');
      expect(text).toContain('retry_lateness_seconds_count{delay="5s",kind="deferred"} 2');
    });

    test('waits until the record is due', async () => {
      const times = [DUE_MS - 2, DUE_MS - 1, DUE_MS - 1, DUE_MS];
      const publishedAt: number[] = [];
      nowMs = () => times.shift() ?? DUE_MS;
      onPublish = () => Promise.resolve(void publishedAt.push(times.length));
      await createRelease()(parked('msg_1', 2));
      expect(publishedAt).toEqual([0]);
    });
  });

  describe('an unusable parked record', () => {
    const good = parked('msg_1', 2);
    const tooFar = parked('msg_1', 2, 0, 4_102_444_800_000);
    test.each([
      ['its value is not JSON', { ...good, value: Buffer.from('{') }],
      ['it has no due-at header', { ...good, headers: {} }],
      [
        'its due-at header differs from its value',
        { ...good, headers: { 'due-at': String(DUE_MS + 1) } },
      ],
      ['its due time is after 2099', tooFar],
    ])('becomes a dead letter: %s', async (_what, record) => {
      await createRelease()(record);
      expect(deadLetters).toEqual([[record, 'unreadable_record']]);
      expect(published).toEqual([]);
    });
  });
});

describe('latest release', () => {
  const NOW_MS = 1_700_000_000_000;
  const DELAY_MS = 5_000;
  const HOUR_MS = 3_600_000;

  let monotonicMs = 0;
  let latest: LatestRelease;

  beforeEach(() => {
    monotonicMs = 1_000;
    latest = createLatestRelease({
      delayTopics: delayTopicsAmong('', ['retry.5s', 'deferred.5s']),
      nowMs: () => NOW_MS,
      monotonicMs: () => monotonicMs,
    });
  });

  function parked(dueAtMs: number, offset = 0, partition = 0, topic = 'retry.5s'): LogRecord {
    const headers = { 'due-at': String(dueAtMs) };
    const stored = { key: null, value: null, headers: {} };
    const place = {
      topic,
      partition,
      offset,
      isInherited: false,
      stored,
      ownedSinceMs: 0,
      timestampMs: 0,
    };
    return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
  }

  describe('the latest release of a parked record', () => {
    test('is infinite when its due time is within its delay', () => {
      expect(latest(parked(NOW_MS + DELAY_MS))).toBe(Infinity);
    });

    test('is infinite when its due time exceeds its delay by less than a second of clock skew', () => {
      expect(latest(parked(NOW_MS + DELAY_MS + 999))).toBe(Infinity);
    });

    test('is one delay from now when the clock was set back since it was parked', () => {
      expect(latest(parked(NOW_MS + HOUR_MS))).toBe(monotonicMs + DELAY_MS);
    });

    test('does not change when it is computed again', () => {
      const first = latest(parked(NOW_MS + HOUR_MS));
      monotonicMs += 3_000;
      expect(latest(parked(NOW_MS + HOUR_MS))).toBe(first);
    });

    test('is the same for every record that was in the partition then', () => {
      const first = latest(parked(NOW_MS + HOUR_MS, 7), 10);
      monotonicMs += 3_000;
      expect(latest(parked(NOW_MS + HOUR_MS, 9))).toBe(first);
    });

    test('is later for records that were parked after that, and in another partition', () => {
      latest(parked(NOW_MS + HOUR_MS, 7), 10);
      monotonicMs += 3_000;
      expect(latest(parked(NOW_MS + HOUR_MS, 10))).toBe(monotonicMs + DELAY_MS);
      expect(latest(parked(NOW_MS + HOUR_MS, 7, 1))).toBe(monotonicMs + DELAY_MS);
    });

    test('is separate for each topic, also when two have the same delay', () => {
      latest(parked(NOW_MS + HOUR_MS, 7), 10);
      monotonicMs += 3_000;
      expect(latest(parked(NOW_MS + HOUR_MS, 7, 0, 'deferred.5s'))).toBe(monotonicMs + DELAY_MS);
    });
  });
});

describe('mark backlogs', () => {
  const HOUR_MS = 3_600_000;
  const NOW_MS = 1_800_000_000_000;

  let marks: [string[], number][];
  let nowMs: number;
  let isStoreUp: boolean;
  let markBacklogs: MarkBacklogs;

  beforeEach(() => {
    marks = [];
    nowMs = NOW_MS;
    isStoreUp = true;
    markBacklogs = createMarkBacklogs({
      webhooks: {
        markDeferred(ids, atMs) {
          marks.push([[...ids], atMs]);
          return isStoreUp ? Promise.resolve() : Promise.reject(new Error('away'));
        },
      },
      logger: { warn: () => undefined },
      reconcileAfterMs: 24 * HOUR_MS,
      nowMs: () => nowMs,
    });
  });

  function deferred(webhookId: string, ageHours: number) {
    const due = { webhookId, createdAtMs: nowMs - ageHours * HOUR_MS };
    return { record: { headers: { 'turn-at': '1' } }, due };
  }

  describe('a webhook whose deferred attempts are released', () => {
    test('is marked when one of them is half a day old', () => {
      markBacklogs([deferred('wh_old', 12), deferred('wh_young', 11.9)]);
      expect(marks).toEqual([[['wh_old'], NOW_MS]]);
    });

    test('is not marked for a retry, which waits for its schedule', () => {
      markBacklogs([{ ...deferred('wh_1', 20), record: { headers: {} } }]);
      expect(marks).toEqual([]);
    });

    test('is marked by a later release when the store is away', async () => {
      isStoreUp = false;
      markBacklogs([deferred('wh_1', 20)]);
      await new Promise(setImmediate);
      markBacklogs([deferred('wh_1', 20)]);
      expect(marks).toHaveLength(2);
    });

    test('is marked again after three hours only', () => {
      const release = () => {
        markBacklogs([deferred('wh_1', 20), deferred('wh_1', 20)]);
      };
      release();
      nowMs += 3 * HOUR_MS - 1;
      release();
      nowMs += 1;
      release();
      expect(marks).toEqual([
        [['wh_1'], NOW_MS],
        [['wh_1'], NOW_MS + 3 * HOUR_MS],
      ]);
    });
  });
});

describe('wait until due', () => {
  const DUE_MS = 1_700_000_000_000;

  function parked(dueAt?: string): LogRecord {
    const headers = dueAt === undefined ? {} : { 'due-at': dueAt };
    const place = {
      topic: 't',
      partition: 0,
      offset: 0,
      isInherited: false,
      stored: { key: null, value: null, headers: {} },
      ownedSinceMs: 0,
      timestampMs: 0,
    };
    return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
  }

  /** A clock that shows these times in turn, and then always the last one. */
  function clockOf(...times: number[]) {
    const said: number[] = [];
    return {
      said,
      nowMs: () => {
        const now = times[Math.min(said.length, times.length - 1)] ?? 0;
        said.push(now);
        return now;
      },
    };
  }

  describe('waiting until a record is due', () => {
    test('ends at once when it is due or overdue', async () => {
      for (const now of [DUE_MS, DUE_MS + 3_600_000]) {
        const clock = clockOf(now);
        await waitUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
        expect(clock.said).toEqual([now]);
      }
    });

    test.each([
      ['a timer fires early', [DUE_MS - 2, DUE_MS - 1, DUE_MS - 1, DUE_MS]],
      ['the clock steps back', [DUE_MS - 1, DUE_MS - 5, DUE_MS - 1, DUE_MS + 1]],
      ['the clock jumps ahead', [DUE_MS - 1, DUE_MS + 3_600_000]],
    ])('never ends early when %s', async (_what, times) => {
      const clock = clockOf(...times);
      await waitUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
      expect(clock.said.filter((now) => now >= DUE_MS)).toEqual([times.at(-1)]);
      expect(clock.said.length).toBeGreaterThanOrEqual(times.length);
    });
  });

  describe('waiting when the clock was set back', () => {
    test('ends at the latest release by the monotonic clock, once that is finite', async () => {
      const latest = [Infinity, Infinity, 5_000];
      const monotonic = [4_999.5, 5_000];
      await waitUntilDue(DUE_MS, () => latest.shift() ?? 5_000, {
        nowMs: () => DUE_MS - 1,
        monotonicMs: () => (latest.length > 0 ? 0 : (monotonic.shift() ?? 0)),
      });
      expect([latest, monotonic]).toEqual([[], []]);
    });
  });

  describe('the partition of a parked record', () => {
    test('is paused until the record is due within the horizon', () => {
      const record = parked(String(DUE_MS));
      expect(pauseMsFor(record, DUE_MS - 300_000)).toBe(300_000 - HORIZON_MS);
      expect(pauseMsFor(record, DUE_MS - HORIZON_MS)).toBe(0);
      expect(pauseMsFor(record, DUE_MS)).toBeLessThan(0);
    });

    test.each([undefined, '', 'soon', '-1', '1e3', '1.5', ' 1', '1'.repeat(16)])(
      'is not paused for a due time of %j, which is unreadable',
      (dueAt) => {
        expect(pauseMsFor(parked(dueAt), 0)).toBe(0);
      },
    );

    test('is not paused for a time after 2099: such a record becomes a dead letter', () => {
      expect(pauseMsFor(parked('4102444800000'), DUE_MS)).toBe(0);
      expect(pauseMsFor(parked('4102444799999'), DUE_MS)).toBeGreaterThan(0);
    });
  });
});

describe('the records of a delay topic that are in memory', () => {
  test('are overdue since the oldest of them was due', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    watch.begin('retry.5s', 1_000);
    watch.begin('retry.5m', 0);
    expect(watch.overdueMs('retry.5s', 2_500)).toBe(1_500);
  });

  test('are not overdue before the oldest is due', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    expect(watch.overdueMs('retry.5s', 1_000)).toBe(0);
  });

  test('do not include those that were released', () => {
    const watch = createOverdueWatch();
    const end = watch.begin('retry.5s', 1_000);
    end();
    expect(watch.overdueMs('retry.5s', 9_000)).toBe(0);
  });
});
