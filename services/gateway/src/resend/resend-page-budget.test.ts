import { expect, test } from '@jest/globals';
import { createPageBudget } from './resend-page-budget.ts';

test('pages get smaller as the memory fills up, and never smaller than 20', () => {
  const budget = createPageBudget(800 * 2_000);
  const sizes = Array.from({ length: 10 }, () => {
    const size = budget.pageSize();
    budget.reserve(size);
    return size;
  });
  expect(sizes).toEqual([500, 500, 500, 250, 125, 62, 31, 20, 20, 20]);
});

test('memory that is released is there for the next page', () => {
  const budget = createPageBudget(800 * 100);
  const release = budget.reserve(100);
  expect([budget.pageSize(), budget.usedBytes()]).toEqual([20, 80_000]);
  release();
  expect([budget.pageSize(), budget.usedBytes()]).toEqual([50, 0]);
});
