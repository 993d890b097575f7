import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Outcome } from './delivery/delivery.ts';
import {
  addCounts,
  attemptsIn,
  beginningOf,
  countAttempt,
  countedAtMs,
  type CountedAttempt,
  DURATION_BOUNDS_MS,
  durationFiguresOf,
  noAttempts,
  RANGES,
  spanOfRange,
  STEP_MS,
  successesIn,
  wholeSteps,
} from './stats.ts';

const at = (text: string): number => Date.parse(`2026-11-24T${text}Z`);

test('steps begin at whole minutes, hours and days of UTC', () => {
  const ms = at('06:28:50.123');
  const beginnings = (['minute', 'hour', 'day'] as const).map((step) => beginningOf(step, ms));
  expect(beginnings).toEqual([at('06:28:00'), at('06:00:00'), at('00:00:00')]);
});

test('a span is widened to the steps that it touches', () => {
  const span = { fromMs: at('06:28:50'), toMs: at('07:00:01') };
  expect(wholeSteps('minute', span)).toEqual({ fromMs: at('06:28:00'), toMs: at('07:01:00') });
  expect(wholeSteps('hour', span)).toEqual({ fromMs: at('06:00:00'), toMs: at('08:00:00') });
});

test('the step that begins at the end of a span is not part of it', () => {
  const span = { fromMs: at('06:00:00'), toMs: at('07:00:00') };
  expect(wholeSteps('hour', span)).toEqual(span);
});

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

const NOW_MS = Date.parse('2026-11-24T06:28:30.500Z');

test('a range has whole steps up to the one that has just begun', () => {
  const shown = RANGES.map((range) => {
    const { step, span } = spanOfRange(range, NOW_MS);
    const [from, to] = [span.fromMs, span.toMs].map((ms) =>
      new Date(ms).toISOString().slice(0, 16),
    );
    return [range, from, to, (span.toMs - span.fromMs) / STEP_MS[step]];
  });
  expect(shown).toEqual([
    ['1h', '2026-11-24T05:29', '2026-11-24T06:29', 60],
    ['24h', '2026-11-23T07:00', '2026-11-24T07:00', 24],
    ['7d', '2026-11-17T07:00', '2026-11-24T07:00', 168],
    ['30d', '2026-10-26T00:00', '2026-11-25T00:00', 30],
  ]);
});
