import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { excessOf, nextRestFactor } from './when-companies-rest.ts';

const after = (busyParts: readonly number[], factor = 0): number =>
  busyParts.reduce(nextRestFactor, factor);

describe('the rest of companies', () => {
  test('is none while the process is busy for less than two fifths of the time', () => {
    expect(after([0, 0.2, 0.4, 0.4])).toBe(0);
  });

  test('grows while the process is busier, to 16 times the work', () => {
    const busy = Array.from({ length: 30 }, () => 0.9);
    expect(after(busy.slice(0, 2))).toBeCloseTo(0.25);
    expect(after(busy)).toBe(16);
  });

  test('stays while the process is busy for about a third', () => {
    expect(after([0.35, 0.4, 0.31], 3)).toBe(3);
  });

  test('ends within three seconds of calm', () => {
    expect(
      after(
        Array.from({ length: 26 }, () => 0.2),
        16,
      ),
    ).toBe(0);
  });
});

describe('the part of the work beyond the fair share', () => {
  test.each([
    ['alone', 1, 1, 0],
    ['with all of the work beside one that does nothing', 1, 2, 0.5],
    ['with all of the work beside 99', 1, 100, 0.99],
    ['with its fair share', 0.25, 4, 0],
    ['with less than its share', 0.1, 4, 0],
    ['without work', 0, 2, 0],
  ])('of a company %s', (_what, share, present, excess) => {
    expect(excessOf(share, present)).toBeCloseTo(excess);
  });

  test('is never less for a company that works more', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(share, share, fc.integer({ min: 1, max: 1_000 }), (one, other, present) => {
        const [less, more] = one < other ? [one, other] : [other, one];
        expect(excessOf(less, present)).toBeLessThanOrEqual(excessOf(more, present));
      }),
    );
  });
});
