import { describe, expect, test } from '@jest/globals';
import type { Attempt } from './delivery.ts';
import { remedyFor, type StuckDelivery } from './stuck-delivery.ts';

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
  id: 'dlv_1',
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: null,
  createdAtMs: 100,
  status: 'pending',
  reason: null,
  attemptCount: 2,
  attempts: [attempt],
  nextAttemptAtMs: 7_000,
  waiting: null,
  waitingSinceMs: null,
  updatedAtMs: 5_020,
  ...fields,
});

describe('a stuck delivery', () => {
  test('needs its next attempt when that is overdue', () => {
    expect(remedyFor(stuck())).toEqual({
      kind: 'attempt',
      cause: 'overdue_retry',
      attemptNumber: 3,
      dueAtMs: 7_000,
    });
  });

  test('needs its last failure published again when no attempt follows and nobody ended it', () => {
    expect(remedyFor(stuck({ nextAttemptAtMs: null }))).toEqual({
      kind: 'failure',
      cause: 'unended_schedule',
      attempt,
    });
  });

  test('needs its first attempt when none is recorded', () => {
    const lost = stuck({ attemptCount: 0, attempts: [], nextAttemptAtMs: 100 });
    expect(remedyFor(lost)).toEqual({
      kind: 'attempt',
      cause: 'lost_message',
      attemptNumber: 1,
      dueAtMs: 100,
    });
  });
});
