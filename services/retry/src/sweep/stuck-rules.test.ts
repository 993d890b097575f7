import { describe, expect, test } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/message/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { decodeDeliveryFailed, decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { StuckDelivery } from '@posthorn/domain/delivery-lifecycle/stuck-delivery.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import {
  expectedDeliveries,
  hasBacklog,
  isLost,
  isToBeMoved,
  remedyRecord,
} from './stuck-rules.ts';

const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TOPICS = { retryDue: 'due', deliveryFailed: 'failed' };
const REF = {
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: null,
  createdAtMs: NOW_MS - 90_000_000,
};

const attempt: Attempt = {
  id: 'att_2',
  number: 2,
  trigger: 'retry',
  outcome: 'http_5xx',
  statusCode: 503,
  response: null,
  responseHeaders: [],
  startedAtMs: 5_000,
  durationMs: 20,
};

const stuck: StuckDelivery = {
  ...REF,
  id: deliveryIdOf('msg_1', 'wh_1'),
  status: 'pending',
  reason: null,
  attemptCount: 2,
  attempts: [attempt],
  nextAttemptAtMs: 7_000,
  updatedAtMs: 5_020,
};

describe('the record that moves a stuck delivery on', () => {
  test('asks for an attempt that is checked against what is recorded', () => {
    const remedy = {
      kind: 'attempt',
      cause: 'overdue_retry',
      attemptNumber: 3,
      dueAtMs: 7_000,
    } as const;
    const record = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
    const { topic, key, value, headers } = record;
    expect([topic, key, headers]).toEqual(['due', 'wh_1', { 'turn-at': String(NOW_MS) }]);
    const due = { ...REF, attemptNumber: 3, trigger: 'retry', dueAtMs: 7_000 };
    expect(decodeRetryDue(value)).toMatchObject(due);
  });

  test('has the trigger of a retry for a first attempt too, so that new messages go before it', () => {
    const remedy = {
      kind: 'attempt',
      cause: 'lost_message',
      attemptNumber: 1,
      dueAtMs: 1,
    } as const;
    const { topic, value } = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
    expect(topic).toBe('due');
    expect(decodeRetryDue(value)).toMatchObject({ attemptNumber: 1, trigger: 'retry' });
  });

  test('tells of the last failure when nobody ended the schedule', () => {
    const remedy = { kind: 'failure', cause: 'unended_schedule', attempt } as const;
    const { topic, key, value } = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
    expect([topic, key]).toEqual(['failed', 'wh_1']);
    expect(decodeDeliveryFailed(value)).toMatchObject({
      ...REF,
      attemptNumber: 2,
      endedAtMs: 5_020,
      outcome: 'http_5xx',
      statusCode: 503,
    });
  });
});

describe('the deliveries that a message should have', () => {
  test('are one for each target', () => {
    const message = sampleMessage('msg_01hf7yat00', { targets: ['wh_1', 'wh_2'] });
    expect(expectedDeliveries([message])).toEqual([
      { id: deliveryIdOf(message.id, 'wh_1'), message, webhookId: 'wh_1' },
      { id: deliveryIdOf(message.id, 'wh_2'), message, webhookId: 'wh_2' },
    ]);
  });

  test('are none for a message without targets', () => {
    expect(expectedDeliveries([sampleMessage('msg_1', { targets: [] })])).toEqual([]);
  });
});

test('a delivery that is not stored is lost unless it may have expired, with an hour of margin', () => {
  const createdAtMs = NOW_MS - DAY_MS;
  expect(isLost({ createdAtMs }, NOW_MS, DAY_MS + HOUR_MS)).toBe(false);
  expect(isLost({ createdAtMs }, NOW_MS, DAY_MS + HOUR_MS + 1)).toBe(true);
});

test.each([
  ['has a rate limit', true, null, true],
  ['was marked within a day', false, NOW_MS - DAY_MS + 1, true],
  ['was marked a day ago', false, NOW_MS - DAY_MS, false],
  ['was never marked', false, null, false],
])('a webhook that %s', (_what, hasRateLimit, deferredAtMs, expected) => {
  const time = { nowMs: NOW_MS, afterMs: DAY_MS };
  expect(hasBacklog({ hasRateLimit, deferredAtMs }, time)).toBe(expected);
});

test('a stuck delivery is moved on, behind a backlog only after seven days', () => {
  const createdAtMs = NOW_MS - 7 * DAY_MS;
  expect(isToBeMoved({ createdAtMs }, false, NOW_MS)).toBe(true);
  expect(isToBeMoved({ createdAtMs }, true, NOW_MS)).toBe(false);
  expect(isToBeMoved({ createdAtMs: createdAtMs - 1 }, true, NOW_MS)).toBe(true);
});
