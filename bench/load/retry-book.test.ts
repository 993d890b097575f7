import { describe, expect, test } from '@jest/globals';
import { createRetryBook } from './retry-book.ts';

const TIMES = { endedAtMs: 1_000, dueAtMs: 6_000 };
const release = (atMs: number) => ({ releasedAtMs: atMs, receivedAtMs: atMs + 3 });

describe('the book of retries', () => {
  test('keeps the first release and counts those that follow', () => {
    const book = createRetryBook();
    book.expect('msg_a', TIMES);
    book.note('msg_a', release(6_001));
    book.note('msg_a', release(7_000));
    expect(book.all()).toEqual([{ ...TIMES, storedAtMs: null, release: release(6_001), count: 2 }]);
  });

  test('knows how many are not released', () => {
    const book = createRetryBook();
    book.expect('msg_a', TIMES);
    book.expect('msg_b', TIMES);
    book.note('msg_a', release(6_000));
    book.note('msg_a', release(6_000));
    expect(book.missing()).toBe(1);
  });

  test('counts apart what nobody expected', () => {
    const book = createRetryBook();
    book.note('msg_x', release(6_000));
    expect(book.strangers()).toBe(1);
    expect(book.missing()).toBe(0);
  });

  test('owes nothing once it has forgotten', () => {
    const book = createRetryBook();
    book.expect('msg_a', TIMES);
    book.forgetAll();
    expect(book.missing()).toBe(0);
    expect(book.all()).toEqual([]);
  });
});
