import { describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '../ids.ts';
import type { Attempt } from './delivery.ts';
import { settleAttempt, settleCancelled, unattemptedDelivery } from './settlement.ts';

const SCHEDULE = [5_000, 300_000];
const REF = {
  deliveryId: 'dlv_1',
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: null,
  createdAtMs: 500,
};
const { deliveryId: id, ...OWN } = REF;

function attempt(changes: Partial<Attempt>): Attempt {
  return {
    id: 'att_1',
    number: 1,
    trigger: 'first',
    outcome: 'http_5xx',
    statusCode: 500,
    response: '',
    responseHeaders: [],
    startedAtMs: 1_000,
    durationMs: 200,
    ...changes,
  };
}

const settle = (made: Attempt) => settleAttempt(REF, made, null, SCHEDULE);

describe('the settlement of an attempt', () => {
  test('delivers after a success, whatever its number and whatever its webhook has become', () => {
    for (const number of [1, 2, 3, 4]) {
      const made = attempt({ number, outcome: 'success' });
      const delivered = { status: 'delivered', reason: null, nextAttemptAtMs: null };
      expect(settle(made)).toMatchObject(delivered);
      expect(settleAttempt(REF, made, 'webhook_deleted', SCHEDULE)).toMatchObject(delivered);
    }
  });

  test('is a failure with a next attempt, whose delay counts from the end of this one', () => {
    const made = attempt({ number: 2, startedAtMs: 6_250, durationMs: 15_000 });
    expect(settle(made)).toEqual({
      id,
      ...OWN,
      status: 'pending',
      reason: null,
      attempt: made,
      nextAttemptAtMs: 6_250 + 15_000 + 300_000,
      updatedAtMs: 6_250 + 15_000,
    });
  });

  test('leaves the last failure pending without a next attempt: the retry service ends the schedule', () => {
    const last = settle(attempt({ number: 3 }));
    expect(last).toMatchObject({ status: 'pending', nextAttemptAtMs: null });
  });

  test('leaves a failure that ends the delivery early pending without a next attempt too', () => {
    const last = settle(attempt({ number: 1, ending: 'max_attempts' }));
    expect(last).toMatchObject({ status: 'pending', reason: null, nextAttemptAtMs: null });
  });

  test('cancels after a failure when the webhook was deleted or disabled meanwhile', () => {
    const made = attempt({});
    expect(settleAttempt(REF, made, 'webhook_disabled', SCHEDULE)).toMatchObject({
      status: 'cancelled',
      reason: 'webhook_disabled',
      attempt: made,
      nextAttemptAtMs: null,
    });
  });
});

test('a delivery that is cancelled instead of its attempt holds no attempt', () => {
  expect(settleCancelled(REF, 'message_missing', 9)).toEqual({
    id,
    ...OWN,
    status: 'cancelled',
    reason: 'message_missing',
    attempt: null,
    nextAttemptAtMs: null,
    updatedAtMs: 9,
  });
});

describe('a delivery before its first attempt', () => {
  const message = {
    id: 'msg_01hf7yat00',
    companyId: 'comp_1',
    appId: 'app_1',
    disabledTargets: new Set(['wh_2']),
    createdAtMs: 500,
  };

  test('waits for the time of its message, and is due since then afterwards', () => {
    const timed = { ...message, deliverAtMs: 1_000 };
    expect(unattemptedDelivery(timed, 'wh_1', 999)).toMatchObject({
      status: 'pending',
      nextAttemptAtMs: 1_000,
      wait: { waiting: 'time', attemptNumber: 1 },
    });
    const due = unattemptedDelivery(timed, 'wh_1', 1_000);
    expect([due.nextAttemptAtMs, due.wait]).toEqual([1_000, undefined]);
  });

  test('is due since its message was accepted', () => {
    expect(unattemptedDelivery(message, 'wh_1', 9)).toEqual({
      ...OWN,
      id: deliveryIdOf(message.id, 'wh_1'),
      messageId: message.id,
      appId: 'app_1',
      status: 'pending',
      reason: null,
      attempt: null,
      nextAttemptAtMs: 500,
      updatedAtMs: 9,
    });
  });

  test('is cancelled when its webhook was disabled as the message was accepted', () => {
    expect(unattemptedDelivery(message, 'wh_2', 9)).toMatchObject({
      webhookId: 'wh_2',
      status: 'cancelled',
      reason: 'webhook_disabled',
      nextAttemptAtMs: null,
      updatedAtMs: 9,
    });
  });
});
