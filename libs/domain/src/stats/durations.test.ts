import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countAttempt, DURATION_BOUNDS_MS, noAttempts } from './attempt-counts.ts';
import { durationFiguresOf } from './durations.ts';

function figuresOf(durationsMs: readonly number[]) {
  const counts = noAttempts();
  for (const durationMs of durationsMs) {
    const attempt = {
      outcome: 'success',
      number: 1,
      trigger: 'first',
      startedAtMs: 0,
      durationMs,
    } as const;
    countAttempt(counts, { attempt, payloadBytes: 0 });
  }
  return durationFiguresOf(counts);
}

/** The bucket that a duration is in; the last one ends with the longest duration. */
function bucketAround(durationMs: number, maxMs: number): [number, number] {
  const index = DURATION_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  if (index === -1) return [DURATION_BOUNDS_MS.at(-1) ?? 0, maxMs];
  return [DURATION_BOUNDS_MS[index - 1] ?? 0, DURATION_BOUNDS_MS[index] ?? 0];
}

describe('how long attempts took', () => {
  test('is unknown without an attempt', () => {
    expect(figuresOf([])).toBeNull();
  });

  test('of equal durations is that duration', () => {
    expect(figuresOf([40, 40, 40])).toMatchObject({ mean: 40, max: 40, p95: 40, p99: 40 });
  });

  test('longer than every bound is the longest duration', () => {
    expect(figuresOf([70_000, 80_000])).toMatchObject({ p50: 80_000, max: 80_000 });
  });

  test('is estimated within the bucket of the true percentile', () => {
    const durations = fc.array(fc.integer({ min: 0, max: 90_000 }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(durations, (unsorted) => {
        const sorted = [...unsorted].sort((a, b) => a - b);
        const figures = figuresOf(sorted);
        const max = sorted.at(-1) ?? 0;
        for (const [name, share] of [
          ['p50', 0.5],
          ['p95', 0.95],
          ['p99', 0.99],
        ] as const) {
          const exact = sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
          const [lower, upper] = bucketAround(exact, max);
          expect(figures?.[name]).toBeGreaterThanOrEqual(Math.floor(lower));
          expect(figures?.[name]).toBeLessThanOrEqual(Math.min(upper, max));
        }
      }),
    );
  });
});
