import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createAdaptiveLinger,
  nextInterval,
  restOfLinger,
  type Gathering,
} from './adaptive-linger.ts';

const BOUNDS = { maxLingerMs: 6, minExpected: 2, enough: 16, patience: 3 };

const ms = (max: number) => fc.double({ min: 0, max, noNaN: true });
const gatherings = fc.record<Gathering>({
  intervalMs: ms(20),
  waitedMs: ms(20),
  quietMs: ms(20),
  waiting: fc.integer({ min: 1, max: 40 }),
});
const gathering = (changes: Partial<Gathering>): Gathering => ({
  intervalMs: 1,
  waitedMs: 0,
  quietMs: 0,
  waiting: 1,
  ...changes,
});

describe('the remaining linger', () => {
  test('is zero when too few items are expected within it', () => {
    expect(restOfLinger(gathering({ intervalMs: 3.1 }), BOUNDS)).toBe(0);
    expect(restOfLinger(gathering({ intervalMs: 3 }), BOUNDS)).toBe(6);
  });

  test('is zero when enough items wait', () => {
    expect(restOfLinger(gathering({ waiting: 16 }), BOUNDS)).toBe(0);
  });

  test('ends when no item has arrived for three usual intervals', () => {
    expect(restOfLinger(gathering({ waitedMs: 2, quietMs: 1 }), BOUNDS)).toBe(2);
    expect(restOfLinger(gathering({ waitedMs: 2, quietMs: 3.5 }), BOUNDS)).toBe(0);
  });

  test('is never negative, and never more than what is left of the longest linger', () => {
    fc.assert(
      fc.property(gatherings, (given) => {
        const restMs = restOfLinger(given, BOUNDS);
        expect(restMs).toBeGreaterThanOrEqual(0);
        expect(restMs).toBeLessThanOrEqual(Math.max(0, BOUNDS.maxLingerMs - given.waitedMs));
      }),
    );
  });

  test('never grows while time passes and no item arrives', () => {
    fc.assert(
      fc.property(gatherings, ms(5), (given, passedMs) => {
        const later = {
          ...given,
          waitedMs: given.waitedMs + passedMs,
          quietMs: given.quietMs + passedMs,
        };
        expect(restOfLinger(later, BOUNDS)).toBeLessThanOrEqual(restOfLinger(given, BOUNDS));
      }),
    );
  });
});

describe('the usual interval', () => {
  const arrivals = fc.array(fc.record({ gapMs: ms(10_000), isAlone: fc.boolean() }));

  test('stays between zero and two lingers, however long a pause is', () => {
    fc.assert(
      fc.property(arrivals, (all) => {
        const intervalMs = all.reduce((each, next) => nextInterval(each, next, 6), 12);
        expect(intervalMs).toBeGreaterThanOrEqual(0);
        expect(intervalMs).toBeLessThanOrEqual(12);
      }),
    );
  });

  test('approaches the intervals that are observed', () => {
    const steady = Array<number>(60).fill(1.5);
    const seen = steady.reduce(
      (each, gapMs) => nextInterval(each, { gapMs, isAlone: false }, 6),
      12,
    );
    expect(seen).toBeCloseTo(1.5, 1);
  });

  test('counts a clock that was set back as no time', () => {
    expect(nextInterval(8, { gapMs: -1_000, isAlone: false }, 6)).toBe(7);
  });
});

describe('an adaptive linger', () => {
  let nowMs = 0;

  /** How long the first item of the next batch waits after 50 arrivals. */
  function restAfter(gapMs: number, isAlone: boolean): number {
    nowMs = 1_000;
    const linger = createAdaptiveLinger(BOUNDS, () => nowMs);
    for (let count = 0; count < 50; count += 1) {
      nowMs += gapMs;
      linger.arrived({ waiting: 0, running: isAlone ? 0 : 1 });
    }
    return linger.restMs({ waiting: 1, isArrival: true });
  }

  test('waits at 650 items a second, and not at 100', () => {
    expect(restAfter(1_000 / 650, false)).toBeGreaterThan(4);
    expect(restAfter(10, false)).toBe(0);
  });

  test('never waits for one client that sends again as soon as it has a response', () => {
    expect(restAfter(0.5, true)).toBe(0);
  });

  test('counts from the first item of the batch, not from the last', () => {
    nowMs = 0;
    const linger = createAdaptiveLinger({ ...BOUNDS, patience: 1_000 }, () => nowMs);
    for (let count = 0; count < 50; count += 1) linger.arrived({ waiting: 1, running: 0 });
    linger.arrived({ waiting: 0, running: 1 });
    nowMs = 4;
    linger.arrived({ waiting: 1, running: 1 });
    expect(linger.restMs({ waiting: 2, isArrival: true })).toBe(2);
  });

  test('does not wait before the first item', () => {
    const linger = createAdaptiveLinger(BOUNDS, () => 0);
    linger.arrived({ waiting: 0, running: 0 });
    expect(linger.restMs({ waiting: 1, isArrival: true })).toBe(0);
  });
});
