import { describe, expect, test } from '@jest/globals';
import type { Outcome } from '../outcome.ts';
import {
  addCounts,
  attemptsIn,
  countAttempt,
  countedAtMs,
  noAttempts,
  successesIn,
  type CountedAttempt,
} from './attempt-counts.ts';

function made(outcome: Outcome, durationMs: number, number = 1): CountedAttempt {
  const attempt = { outcome, number, trigger: 'first' as const, startedAtMs: 5_000, durationMs };
  return { attempt, payloadBytes: 100 };
}

function countsOf(...attempts: CountedAttempt[]) {
  const counts = noAttempts();
  for (const each of attempts) countAttempt(counts, each);
  return counts;
}

describe('counts of attempts', () => {
  test('have each attempt once by its outcome and once by its duration', () => {
    const counts = countsOf(
      made('success', 1),
      made('success', 1.5),
      made('http_5xx', 7, 2),
      made('timeout', 15_000),
      made('success', 99_000),
    );
    expect(counts).toEqual({
      outcomes: { success: 3, http_5xx: 1, timeout: 1 },
      firstAttempts: 4,
      payloadBytes: 500,
      durationMs: 114_009.5,
      maxDurationMs: 99_000,
      durations: { 0: 1, 1: 1, 3: 1, 13: 1, 16: 1 },
    });
    expect([attemptsIn(counts), successesIn(counts)]).toEqual([5, 3]);
  });

  test('are added up as if all attempts had been counted together', () => {
    const [one, two] = [made('success', 3), made('timeout', 400, 2)];
    const sum = countsOf(one);
    addCounts(sum, countsOf(two));
    expect(sum).toEqual(countsOf(one, two));
  });

  test('take fields that are not stored as 0', () => {
    const sum = countsOf(made('success', 3));
    addCounts(sum, {});
    expect(sum).toEqual(countsOf(made('success', 3)));
  });

  test('are of the time at which the attempt ended', () => {
    expect(countedAtMs(made('success', 250))).toBe(5_250);
  });
});
