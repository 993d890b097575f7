import { describe, expect, test } from '@jest/globals';
import { awaitsAttempt, isFinal, refOf } from './delivery.ts';

describe('a delivery awaits an attempt', () => {
  test('when it has no document yet', () => {
    expect(awaitsAttempt(undefined, 1)).toBe(true);
  });

  test('when it is pending and has fewer attempts', () => {
    expect(awaitsAttempt({ status: 'pending', attemptCount: 1 }, 2)).toBe(true);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 2 }, 2)).toBe(false);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 3 }, 2)).toBe(false);
  });

  test.each(['delivered', 'exhausted', 'cancelled'] as const)(
    'never when it is %s, which is final',
    (status) => {
      expect(isFinal(status)).toBe(true);
      expect(awaitsAttempt({ status, attemptCount: 1 }, 2)).toBe(false);
    },
  );
});

test('only a pending delivery is not final', () => {
  expect(isFinal('pending')).toBe(false);
});

test('a reference has none of the other fields of its source', () => {
  const ref = {
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_1',
    appId: null,
    createdAtMs: 1,
  };
  expect(refOf({ ...ref, attemptNumber: 3 } as typeof ref)).toEqual(ref);
});
