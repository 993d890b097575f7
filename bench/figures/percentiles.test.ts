import { describe, expect, test } from '@jest/globals';
import { percentilesOf } from './percentiles.ts';

describe('percentiles', () => {
  test('are the nearest ranks, whatever the order of the values', () => {
    const values = Array.from({ length: 1_000 }, (_, n) => 1_000 - n);
    expect(percentilesOf(values)).toEqual({
      count: 1_000,
      p50: 500,
      p90: 900,
      p99: 990,
      p999: 999,
      max: 1_000,
    });
  });

  test('sort as numbers and keep one decimal', () => {
    expect(percentilesOf([100, 9, 20.26]).p50).toBe(20.3);
  });

  test('of one value are that value', () => {
    expect(percentilesOf([7])).toEqual({ count: 1, p50: 7, p90: 7, p99: 7, p999: 7, max: 7 });
  });

  test('of no values are null', () => {
    expect(percentilesOf([])).toEqual({
      count: 0,
      p50: null,
      p90: null,
      p99: null,
      p999: null,
      max: null,
    });
  });
});
