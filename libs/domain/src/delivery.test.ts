import { describe, expect, test } from '@jest/globals';
import { awaitsAttempt, endedAtMs, isFinal, settle, type Attempt } from './delivery.ts';
import { messageStatus } from './message.ts';

const SCHEDULE = [5_000, 300_000];

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

describe('settling an attempt', () => {
  test('delivers after a success, also the last of the schedule', () => {
    for (const number of [1, 2, 3, 4]) {
      const settlement = settle(attempt({ number, outcome: 'success' }), SCHEDULE);
      expect(settlement).toEqual({ status: 'delivered', nextAttemptAtMs: null });
    }
  });

  test('counts the delay of the next attempt from the end of the failed one', () => {
    expect(endedAtMs(attempt({}))).toBe(1_200);
    expect(settle(attempt({}), SCHEDULE)).toEqual({ status: 'pending', nextAttemptAtMs: 6_200 });
    const second = attempt({
      number: 2,
      startedAtMs: 6_250,
      durationMs: 15_000,
      outcome: 'timeout',
    });
    expect(settle(second, SCHEDULE).nextAttemptAtMs).toBe(6_250 + 15_000 + 300_000);
  });

  test('leaves the last failure pending without a next attempt: the retry service ends the schedule', () => {
    const settlement = settle(attempt({ number: 3 }), SCHEDULE);
    expect(settlement).toEqual({ status: 'pending', nextAttemptAtMs: null });
  });
});

describe('a delivery awaits an attempt', () => {
  test('when it has no document yet', () => {
    expect(awaitsAttempt(undefined, 1)).toBe(true);
  });

  test('when it is pending and has fewer attempts', () => {
    expect(awaitsAttempt({ status: 'pending', attemptCount: 1 }, 2)).toBe(true);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 2 }, 2)).toBe(false);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 3 }, 2)).toBe(false);
  });

  test.each(['delivered', 'exhausted', 'cancelled'] as const)('never when it is %s', (status) => {
    expect(isFinal(status)).toBe(true);
    expect(awaitsAttempt({ status, attemptCount: 1 }, 2)).toBe(false);
  });

  test('and pending is the one state that is not final', () => {
    expect(isFinal('pending')).toBe(false);
  });
});

describe('the status of a message', () => {
  test('is that of its least finished delivery', () => {
    expect(messageStatus(['delivered', 'cancelled', 'exhausted', 'pending'])).toBe('pending');
    expect(messageStatus(['delivered', 'cancelled', 'exhausted'])).toBe('exhausted');
    expect(messageStatus(['cancelled', 'delivered'])).toBe('cancelled');
    expect(messageStatus(['delivered', 'delivered'])).toBe('delivered');
  });

  test('is delivered when no webhook gets it', () => {
    expect(messageStatus([])).toBe('delivered');
  });
});
