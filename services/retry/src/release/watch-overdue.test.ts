import { describe, expect, test } from '@jest/globals';
import { createOverdueWatch } from './watch-overdue.ts';

describe('the records of a delay topic that are in memory', () => {
  test('are overdue since the oldest of them was due', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    watch.begin('retry.5s', 1_000);
    watch.begin('retry.5m', 0);
    expect(watch.overdueMs('retry.5s', 2_500)).toBe(1_500);
  });

  test('are not overdue before the oldest is due', () => {
    const watch = createOverdueWatch();
    watch.begin('retry.5s', 2_000);
    expect(watch.overdueMs('retry.5s', 1_000)).toBe(0);
  });

  test('do not include those that were released', () => {
    const watch = createOverdueWatch();
    const end = watch.begin('retry.5s', 1_000);
    end();
    expect(watch.overdueMs('retry.5s', 9_000)).toBe(0);
  });
});
