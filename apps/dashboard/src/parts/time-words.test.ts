import { describe, expect, test } from '@jest/globals';
import { durationText, hourText, relativeTime } from './time-words.ts';

const NOW_MS = Date.UTC(2026, 0, 31, 12);

describe('relativeTime', () => {
  test.each([
    [-300, 'just now'],
    [300, 'now'],
    [5_000, 'in 5 seconds'],
    [-59_000, '59 seconds ago'],
    [-3_599_000, '59 minutes ago'],
    [7_200_000, 'in 2 hours'],
    [-86_400_000, '1 day ago'],
  ])('of %d ms is %s', (distanceMs, words) => {
    expect(relativeTime(NOW_MS + distanceMs, NOW_MS)).toBe(words);
  });
});

describe('durationText', () => {
  test.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [15_000, '15.0 s'],
    [125_000, '2 min 5 s'],
    [7_500_000, '2 h 5 min'],
  ])('of %d ms is %s', (durationMs, words) => {
    expect(durationText(durationMs)).toBe(words);
  });
});

describe('hourText', () => {
  const begins = new Date(2026, 0, 31, 13).getTime();
  test('of today is the hour alone', () => {
    expect(hourText(begins, begins + 60_000)).toBe('13:00–14:00');
  });
  test('of an earlier day names the day', () => {
    expect(hourText(begins, begins + 2 * 86_400_000)).toBe('31 Jan, 13:00–14:00');
  });
});
