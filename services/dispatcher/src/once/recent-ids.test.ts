import { expect, test } from '@jest/globals';
import { createRecentIds } from './recent-ids.ts';

test('the newest are remembered, and what is far older is not', () => {
  const recent = createRecentIds(100);
  for (let n = 0; n < 1_000; n += 1) {
    recent.add(`id-${n}`);
    expect(recent.has(`id-${Math.max(0, n - 99)}`)).toBe(true);
    expect(recent.has(`id-${n - 200}`)).toBe(false);
  }
});
