import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/message/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { delayTopicsAmong } from '@posthorn/domain/records/topics.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { Registry } from 'prom-client';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Cancellation } from '@posthorn/domain/message/delivery.ts';
import type { WebhookState } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createReleaseParked } from './release-parked.ts';
import { createRetryMetrics } from '../retry-metrics.ts';
import { createOverdueWatch } from './watch-overdue.ts';

const DUE_MS = 1_700_000_000_000;
const DELAY_TOPICS = delayTopicsAmong('', ['retry.5s', 'deferred.5s']);

let published: OutgoingRecord[][] = [];
let deadLetters: [LogRecord, string][] = [];
let cancelled: Cancellation[] = [];
const states = new Map<string, { status: DeliveryStatus; attemptCount: number }>();
const webhooks = new Map<string, WebhookState>();
let backlogs: string[] = [];
let nowMs: () => number;
let onPublish: () => Promise<void>;
let registry: Registry;

beforeEach(() => {
  registry = new Registry();
  [published, deadLetters] = [[], []];
  [cancelled, backlogs] = [[], []];
  states.clear();
  webhooks.clear();
  webhooks.set('wh_1', { disabled: false, hasRateLimit: false, deferredAtMs: null });
  nowMs = () => DUE_MS;
  onPublish = () => Promise.resolve();
});

function createRelease(isOurs = (): boolean => true): (record: LogRecord) => Promise<void> {
  const release = createReleaseParked({
    keepTrying,
    retryDueTopic: 'retry-due',
    metrics: createRetryMetrics(registry, [5_000]),
    delayTopics: DELAY_TOPICS,
    overdue: createOverdueWatch(),
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
        return Promise.resolve();
      },
    },
    webhooks: { statesOf: () => Promise.resolve(webhooks) },
    markBacklogs: (released) => {
      backlogs.push(...released.map(({ due }) => due.webhookId));
    },
    deadLetters: {
      put: (record, reason) => {
        deadLetters.push([record, reason]);
        return Promise.resolve();
      },
    },
    nowMs: () => nowMs(),
    monotonicMs: () => 0,
    latestRelease: () => Infinity,
  });
  return (record) => release(record, isOurs);
}

function parked(messageId: string, attemptNumber: number, offset = 0, dueAtMs = DUE_MS): LogRecord {
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
    webhooks.set('wh_1', { disabled: true, hasRateLimit: false, deferredAtMs: null });
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
    const times = [DUE_MS - 1, DUE_MS - 1, DUE_MS];
    const left: number[] = [];
    nowMs = () => {
      if (published.length === 0) left.push(times.length);
      return times.shift() ?? DUE_MS;
    };
    await createRelease()(parked('msg_1', 2));
    expect([left, published.flat().length]).toEqual([[3, 2, 1], 1]);
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
