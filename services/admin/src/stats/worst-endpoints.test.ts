import { expect, test } from '@jest/globals';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import { countAttempt, noAttempts } from '@posthorn/domain/stats/attempt-counts.ts';
import { worstEndpoints } from './worst-endpoints.ts';

function endpoint(webhookId: string, outcomes: Partial<Record<Outcome, number>>) {
  const counts = noAttempts();
  for (const [outcome, count] of Object.entries(outcomes) as [Outcome, number][]) {
    for (let n = 0; n < count; n += 1) {
      const attempt = {
        outcome,
        number: 1,
        trigger: 'first',
        startedAtMs: 0,
        durationMs: 40,
      } as const;
      countAttempt(counts, { attempt, payloadBytes: 0 });
    }
  }
  return { webhookId, companyId: 'comp_a', counts };
}

test('the endpoints with the most failures come first, those without any are left out', () => {
  const endpoints = [
    endpoint('wh_good', { success: 9 }),
    endpoint('wh_few', { success: 1, timeout: 1 }),
    endpoint('wh_many', { success: 4, timeout: 2, http_5xx: 3 }),
  ];
  expect(worstEndpoints(endpoints, 9)).toEqual([
    {
      webhookId: 'wh_many',
      companyId: 'comp_a',
      attempts: 9,
      failed: 5,
      failedShare: 0.556,
      p95Ms: 40,
      failures: 'http_5xx 3, timeout 2',
    },
    expect.objectContaining({ webhookId: 'wh_few', attempts: 2, failed: 1, failedShare: 0.5 }),
  ]);
});

test('of as many failures those come first that fail more often', () => {
  const endpoints = [
    endpoint('wh_busy', { success: 99, timeout: 1 }),
    endpoint('wh_broken', { timeout: 1 }),
  ];
  expect(worstEndpoints(endpoints, 1).map(({ webhookId }) => webhookId)).toEqual(['wh_broken']);
});
