import { describe, expect, test } from '@jest/globals';
import { outcomeOfStatus } from './delivery.ts';
import { disabledReasonOf, endingOf } from './ending.ts';

const DEFAULTS = {
  maxAttempts: null,
  finalStatusCodes: null,
  onGone: 'retry',
  obeyControlHeaders: false,
} as const;
/** Everything at once. */
const STRICT = {
  maxAttempts: 3,
  finalStatusCodes: [410, 422],
  onGone: 'disable',
  obeyControlHeaders: true,
} as const;

const answer = (statusCode: number, control?: string, number = 1) => ({
  number,
  outcome: outcomeOfStatus(statusCode),
  statusCode,
  responseHeaders: control === undefined ? [] : [{ key: 'Webhook-Delivery', value: control }],
});

describe('a failed attempt', () => {
  test.each([
    ['gone', answer(410, 'abort-message', 3)],
    ['aborted', answer(422, 'abort-message', 3)],
    ['aborted', answer(500, ' Abort-Message ')],
    ['not_retryable', answer(422, undefined, 3)],
    ['max_attempts', answer(500, undefined, 3)],
    ['max_attempts', answer(500, 'disable', 7)],
    [null, answer(500, 'something else', 2)],
    [null, answer(404)],
  ])('ends its delivery by the most telling reason: %s', (ending, attempt) => {
    expect(endingOf(STRICT, attempt)).toBe(ending);
  });

  test('without a status counts for the number of attempts only', () => {
    const attempt = { outcome: 'timeout' as const, statusCode: null, responseHeaders: [] };
    expect(endingOf(STRICT, { ...attempt, number: 2 })).toBeNull();
    expect(endingOf(STRICT, { ...attempt, number: 3 })).toBe('max_attempts');
  });

  test.each([answer(410), answer(422), answer(500, 'abort-message'), answer(500, undefined, 7)])(
    'leaves the end to the schedule by default: %j',
    (attempt) => {
      expect(endingOf(DEFAULTS, attempt)).toBeNull();
    },
  );
});

test('an attempt that succeeded ends its delivery as a success', () => {
  expect(endingOf(STRICT, answer(200, 'abort-message', 3))).toBeNull();
});

describe('a response disables the webhook', () => {
  test.each([
    ['gone', answer(410)],
    ['gone', answer(410, 'disable')],
    ['control_header', answer(500, 'disable')],
    ['control_header', answer(204, 'disable')],
    [null, answer(404)],
    [null, answer(204, 'abort-message')],
  ])('when the webhook allows it: %s', (reason, response) => {
    expect(disabledReasonOf(STRICT, response)).toBe(reason);
    expect(disabledReasonOf(DEFAULTS, response)).toBeNull();
  });
});
