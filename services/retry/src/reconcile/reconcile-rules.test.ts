import { describe, expect, test } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { decodeDeliveryFailed, decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { StuckDelivery } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { drivingRecord, findingOf, unattemptedDeliveries } from './reconcile-rules.ts';

const NOW_MS = 1_700_000_000_000;
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

const stuck = (fields: Partial<StuckDelivery> = {}): StuckDelivery => ({
  ...REF,
  id: deliveryIdOf('msg_1', 'wh_1'),
  status: 'pending',
  reason: null,
  attemptCount: 2,
  attempts: [attempt],
  nextAttemptAtMs: 7_000,
  updatedAtMs: 5_020,
  ...fields,
});

describe('a delivery that stands still', () => {
  test('has its next attempt made, checked against what is recorded, when that is overdue', () => {
    const { topic, key, value, headers } = drivingRecord(TOPICS, stuck(), NOW_MS);
    expect(findingOf(stuck())).toBe('overdue_retry');
    expect([topic, key, headers]).toEqual(['due', 'wh_1', { 'turn-at': String(NOW_MS) }]);
    const due = { ...REF, attemptNumber: 3, trigger: 'retry', dueAtMs: 7_000 };
    expect(decodeRetryDue(value)).toMatchObject(due);
  });

  test('has its last failure told again when no attempt follows and nobody ended it', () => {
    const unended = stuck({ nextAttemptAtMs: null });
    const { topic, key, value } = drivingRecord(TOPICS, unended, NOW_MS);
    expect(findingOf(unended)).toBe('unended_schedule');
    expect([topic, key]).toEqual(['failed', 'wh_1']);
    expect(decodeDeliveryFailed(value)).toMatchObject({
      ...REF,
      attemptNumber: 2,
      endedAtMs: 5_020,
      outcome: 'http_5xx',
      statusCode: 503,
    });
  });

  test('has its first attempt made, behind what is new, when none is recorded', () => {
    const lost = stuck({ attemptCount: 0, attempts: [], nextAttemptAtMs: REF.createdAtMs });
    const { topic, value } = drivingRecord(TOPICS, lost, NOW_MS);
    expect(findingOf(lost)).toBe('lost_message');
    expect(topic).toBe('due');
    expect(decodeRetryDue(value)).toMatchObject({ attemptNumber: 1, trigger: 'retry' });
  });
});

describe('the deliveries that a message should have', () => {
  const message = sampleMessage('msg_01hf7yat00', {
    targets: ['wh_1', 'wh_2'],
    disabledTargets: ['wh_2'],
  });

  test('are due since the message was accepted as long as no attempt is recorded', () => {
    expect(unattemptedDeliveries([message], NOW_MS)[0]).toEqual({
      id: deliveryIdOf(message.id, 'wh_1'),
      messageId: message.id,
      webhookId: 'wh_1',
      companyId: 'comp_a',
      appId: null,
      status: 'pending',
      reason: null,
      attempt: null,
      createdAtMs: message.createdAtMs,
      nextAttemptAtMs: message.createdAtMs,
      updatedAtMs: NOW_MS,
    });
  });

  test('are cancelled where the webhook was disabled when the message came', () => {
    const [, disabled] = unattemptedDeliveries([message], NOW_MS);
    expect(disabled).toMatchObject({
      webhookId: 'wh_2',
      status: 'cancelled',
      reason: 'webhook_disabled',
      nextAttemptAtMs: null,
    });
  });

  test('are none for a message that nobody gets', () => {
    expect(unattemptedDeliveries([sampleMessage(message.id, { targets: [] })], 1)).toEqual([]);
  });
});
