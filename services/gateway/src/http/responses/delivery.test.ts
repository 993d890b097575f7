import { expect, test } from '@jest/globals';
import type { Attempt, Delivery } from '@posthorn/domain/message/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { describeDelivery } from './delivery.ts';
import { UNKNOWN_HEADERS } from './sent-headers.ts';

const messageId = 'msg_01hf2m6q7xabcdefghjkmnpqrs';

function delivery(attemptCount: number, attempts: Attempt[]): Delivery {
  return {
    id: deliveryIdOf(messageId, 'wh_1'),
    messageId,
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    status: 'exhausted',
    reason: null,
    attemptCount,
    attempts,
    nextAttemptAtMs: null,
    createdAtMs: 1,
    updatedAtMs: 2,
  };
}

const attempt = (number: number, startedAtMs: number): Attempt => ({
  id: `att_${number}`,
  number,
  trigger: 'retry',
  outcome: 'timeout',
  statusCode: null,
  response: null,
  responseHeaders: [],
  startedAtMs,
  durationMs: 1,
});

test('the attempt count includes attempts that are no longer kept', () => {
  const shown = describeDelivery(delivery(1_001, []), UNKNOWN_HEADERS);
  expect(shown).toMatchObject({ attemptCount: 1_001, attempts: [] });
});

test('an attempt from before the last change of the webhook shows no headers', () => {
  const headers = [{ key: 'X-New', value: '1' }];
  const source = delivery(2, [attempt(1, 99), attempt(2, 100)]);
  const { attempts } = describeDelivery(source, { headers, sinceMs: 100 });
  expect(attempts.map((each) => each.headers)).toEqual([[], headers]);
});

test('an attempt without an access token shows why, and others show null', () => {
  const reason = 'the token server answered 401: invalid_client';
  const failed = { ...attempt(2, 2), outcome: 'token_failed' as const, failureReason: reason };
  const { attempts } = describeDelivery(delivery(2, [attempt(1, 1), failed]), UNKNOWN_HEADERS);
  expect(attempts.map((each) => each.failureReason)).toEqual([null, reason]);
});
