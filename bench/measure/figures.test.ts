import { expect, test } from '@jest/globals';
import { percentilesOf, secondsOf } from './figures.ts';

test('percentiles are the nearest ranks, whatever the order of the values', () => {
  const values = Array.from({ length: 1_000 }, (_, n) => 1_000 - n);
  const expected = { count: 1_000, p50: 500, p90: 900, p99: 990, p999: 999, max: 1_000 };
  expect(percentilesOf(values)).toEqual(expected);
});

test('percentiles sort as numbers and keep one decimal', () => {
  expect(percentilesOf([100, 9, 20.26]).p50).toBe(20.3);
  expect(percentilesOf([7])).toEqual({ count: 1, p50: 7, p90: 7, p99: 7, p999: 7, max: 7 });
  const nothing = { count: 0, p50: null, p90: null, p99: null, p999: null, max: null };
  expect(percentilesOf([])).toEqual(nothing);
});

test('a second counts an event when it happened and a latency when it was to begin, without gaps', () => {
  const nothing = { p50: null, p99: null };
  const none = { accepted: 0, delivered: 0, acceptMs: nothing, endToEndMs: nothing };
  const timeline = { intendedAtMs: 5_900, acceptedAtMs: 6_100, arrivedAtMs: 8_050 };
  expect(secondsOf([timeline], 5_000)).toEqual([
    {
      ...none,
      second: 0,
      acceptMs: { p50: 200, p99: 200 },
      endToEndMs: { p50: 2_150, p99: 2_150 },
    },
    { ...none, second: 1, accepted: 1 },
    { ...none, second: 2 },
    { ...none, second: 3, delivered: 1 },
  ]);
});

test('a second does not count a message that never arrived as delivered', () => {
  const seconds = secondsOf([{ intendedAtMs: 0, acceptedAtMs: 10, arrivedAtMs: undefined }], 0);
  expect(seconds).toMatchObject([{ accepted: 1, delivered: 0, endToEndMs: { p50: null } }]);
});
