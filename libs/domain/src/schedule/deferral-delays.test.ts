import { describe, expect, test } from '@jest/globals';
import { DEFAULT_DEFERRAL_DELAYS, deferralDelaysSchema } from './deferral-delays.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

function refusalsOf(text: string): string[] {
  return deferralDelaysSchema.safeParse(text).error?.issues.map(({ message }) => message) ?? [];
}

describe('the delays of deferrals', () => {
  test('go by default from one second to twelve hours', () => {
    expect(deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS)).toEqual([
      ...[1_000, 5_000, 15_000, MINUTE_MS],
      ...[5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 12 * HOUR_MS],
    ]);
  });

  test('rise by a factor of six at most, so that a backlog does not come back in one wave', () => {
    const delaysMs = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
    const ratios = delaysMs.slice(1).map((delayMs, index) => delayMs / (delaysMs[index] ?? NaN));
    expect(Math.max(...ratios)).toBeLessThanOrEqual(6);
  });

  test('may be one alone', () => {
    expect(deferralDelaysSchema.parse('1m')).toEqual([MINUTE_MS]);
  });

  test.each(['30s', '1s,5s,59s'])(
    'are refused when far turns would come back too often: %s',
    (text) => {
      expect(refusalsOf(text)).toEqual([
        'the last delay must be 1m or longer: an attempt whose turn is further away is read and written again after each one',
      ]);
    },
  );

  test.each([
    ['1s,5s,5s', 3],
    ['1s,1000ms', 2],
    ['15s,1s,5m', 2],
    ['1s,5m,5s,1m', 3],
  ])('are refused when they do not rise: %s', (text, number) => {
    expect(refusalsOf(text)).toEqual([
      `each delay must be longer than the one before it; number ${number} is not`,
    ]);
  });

  test.each([
    '',
    '1s,soon',
    '1s,,5s',
    '5s,1s,hush',
    '169h',
    Array<string>(21).fill('1s').join(','),
  ])('are refused when one of them is no delay, or they are too many: %j', (text) => {
    const [refusal, ...others] = refusalsOf(text);
    expect(refusal).toMatch(/^must be 1 to 20 delays from 10ms to 168h, .* such as 1s,5s,15s/);
    expect(others).toEqual([]);
  });
});
