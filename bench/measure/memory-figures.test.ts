import { describe, expect, test } from '@jest/globals';
import { memoryFigures } from './memory-figures.ts';

function sample(residentMiB: number | null) {
  const heap = { heapUsedMiB: null, heapTotalMiB: null, externalMiB: null };
  return { second: 0, residentMiB, ...heap, timers: 3, usedMiB: {} };
}

describe('the memory of a service', () => {
  test('is given before, after, and at its highest', () => {
    const figures = memoryFigures([sample(90), sample(120), sample(100)]);
    expect(figures.residentMiB).toEqual({ before: 90, highest: 120, after: 100 });
    expect(figures.timers).toEqual({ before: 3, highest: 3, after: 3 });
  });

  test('is null where nothing could be read', () => {
    const nothing = { before: null, highest: null, after: null };
    expect(memoryFigures([sample(1)]).heapUsedMiB).toEqual(nothing);
    expect(memoryFigures([]).residentMiB).toEqual(nothing);
  });

  test('skips failed samples for the highest value', () => {
    const { residentMiB } = memoryFigures([sample(90), sample(null), sample(95)]);
    expect(residentMiB.highest).toBe(95);
  });
});
