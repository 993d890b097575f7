import { describe, expect, test } from '@jest/globals';
import { createOverdueWatch } from './watch-overdue.ts';

describe('what is in hand of a delay topic', () => {
  test('is overdue by its oldest record', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    watch.begin('retry.5s', 1_000);
    watch.begin('retry.5m', 0);
    expect(watch.overdueMs('retry.5s', 2_500)).toBe(1_500);
  });

  test('is not overdue before its time', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    expect(watch.overdueMs('retry.5s', 1_000)).toBe(0);
  });

  test('is forgotten at its release', () => {
    const watch = createOverdueWatch();
    const end = watch.begin('retry.5s', 1_000);
    end();
    expect(watch.overdueMs('retry.5s', 9_000)).toBe(0);
  });
});
