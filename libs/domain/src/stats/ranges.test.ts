import { expect, test } from '@jest/globals';
import { RANGES, spanOfRange } from './ranges.ts';
import { STEP_MS } from './steps.ts';

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
