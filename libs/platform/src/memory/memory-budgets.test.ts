import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createMemoryBudgets } from './memory-budgets.ts';

test('each part shows its budget, and what it uses at the moment of the scrape', async () => {
  const registry = new Registry();
  const budgets = createMemoryBudgets(registry);
  let held = 5;
  budgets.add('queue', 100, () => held);
  budgets.add('cache', 200, () => 7);
  held = 6;

  const metrics = await registry.metrics();

  expect(metrics).toContain('posthorn_memory_budget_bytes{part="queue"} 100');
  expect(metrics).toContain('posthorn_memory_budget_bytes{part="cache"} 200');
  expect(metrics).toContain('posthorn_memory_used_bytes{part="queue"} 6');
  expect(metrics).toContain('posthorn_memory_used_bytes{part="cache"} 7');
});

test('a part is added only once', () => {
  const budgets = createMemoryBudgets(new Registry());
  budgets.add('queue', 100, () => 0);
  expect(() => {
    budgets.add('queue', 100, () => 0);
  }).toThrow('queue has a budget');
});
