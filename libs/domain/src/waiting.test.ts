import { describe, expect, test } from '@jest/globals';
import { beginHold, type Hold, isHolding, isOnHold } from './waiting.ts';

const hold: Hold = { sinceMs: 5, untilMs: 100, reason: 'a', by: 'key_1' };
const asked = { untilMs: 200, reason: 'b', by: 'key_2' };

describe('a hold', () => {
  test.each([
    [null, 1, false],
    [hold, 99, true],
    [hold, 100, false],
    [{ ...hold, untilMs: null }, 1e15, true],
  ])('%j lives at %i: %s', (given, nowMs, expected) => {
    expect(isHolding(given, nowMs)).toBe(expected);
  });

  test('begins when there is none, and when the one before has ended', () => {
    expect(beginHold(null, asked, 50)).toEqual({ ...asked, sinceMs: 50 });
    expect(beginHold(hold, asked, 100)).toEqual({ ...asked, sinceMs: 100 });
  });

  test('gets another end and reason while it lives, and is left alone when both are the same', () => {
    expect(beginHold(hold, asked, 50)).toEqual({ ...asked, sinceMs: 5 });
    expect(beginHold(hold, { ...hold, by: 'key_2' }, 50)).toBeNull();
  });

  test('keeps the end that a repeat leaves out while it lives, and loses it for null', () => {
    const repeat = { by: 'key_2', reason: 'a' };
    expect(beginHold(hold, repeat, 50)).toBeNull();
    expect(beginHold(hold, { ...repeat, reason: null }, 50)).toEqual({
      ...hold,
      reason: null,
      by: 'key_2',
    });
    expect(beginHold(hold, { ...repeat, untilMs: null }, 50)?.untilMs).toBeNull();
    expect(beginHold(hold, repeat, 100)).toEqual({ ...repeat, sinceMs: 100, untilMs: null });
  });
});

test('a webhook is on hold by its own hold, by that of its app, and while its company is suspended', () => {
  const free = { webhook: { held: null }, appHeld: null, isSuspended: false };
  expect(isOnHold(free, 50)).toBe(false);
  expect(isOnHold({ ...free, webhook: { held: hold } }, 50)).toBe(true);
  expect(isOnHold({ ...free, appHeld: hold }, 50)).toBe(true);
  expect(isOnHold({ ...free, appHeld: hold }, 100)).toBe(false);
  expect(isOnHold({ ...free, isSuspended: true }, 50)).toBe(true);
});
