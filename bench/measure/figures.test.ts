import { describe, expect, test } from '@jest/globals';
import { percentilesOf, secondsOf } from './figures.ts';

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

describe('the seconds of a phase', () => {
  test('count an event when it happened and a latency when it was to begin', () => {
    const seconds = secondsOf(
      [{ intendedAtMs: 5_900, acceptedAtMs: 6_100, arrivedAtMs: 7_050 }],
      5_000,
    );
    expect(seconds).toEqual([
      {
        second: 0,
        accepted: 0,
        delivered: 0,
        acceptMs: { p50: 200, p99: 200 },
        endToEndMs: { p50: 1_150, p99: 1_150 },
      },
      { second: 1, accepted: 1, delivered: 0, ...nothing() },
      { second: 2, accepted: 0, delivered: 1, ...nothing() },
    ]);
  });

  test('show a second without events', () => {
    const seconds = secondsOf([{ intendedAtMs: 0, acceptedAtMs: 10, arrivedAtMs: 3_500 }], 0);
    expect(seconds.map(({ accepted, delivered }) => [accepted, delivered])).toEqual([
      [1, 0],
      [0, 0],
      [0, 0],
      [0, 1],
    ]);
  });

  test('do not count a message that never arrived as delivered', () => {
    const seconds = secondsOf([{ intendedAtMs: 0, acceptedAtMs: 10, arrivedAtMs: undefined }], 0);
    expect(seconds).toMatchObject([{ accepted: 1, delivered: 0, endToEndMs: { p50: null } }]);
  });
});

function nothing() {
  return { acceptMs: { p50: null, p99: null }, endToEndMs: { p50: null, p99: null } };
}
