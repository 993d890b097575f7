import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { countSent, createSentLastSecond, untilRateAllowsMs } from './sent-last-second.ts';

const SLOT_MS = 10;

/** Sends as soon as allowed after each of these gaps. Returns when each was sent. */
function sendAfter(gapsMs: readonly number[], perSecond: number): number[] {
  const lately = createSentLastSecond();
  let nowMs = 1_000_000;
  return gapsMs.map((gapMs) => {
    nowMs += gapMs;
    nowMs += untilRateAllowsMs(lately, perSecond, nowMs);
    countSent(lately, nowMs);
    return nowMs;
  });
}

describe('the attempts of the last second', () => {
  it('never exceed the rate, wherever the second begins', () => {
    const gaps = fc.array(fc.double({ min: 0, max: 300, noNaN: true }), { maxLength: 200 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 30 }), (gapsMs, perSecond) => {
        const sentMs = sendAfter(gapsMs, perSecond);
        return sentMs.every((atMs, n) => {
          const oneTooMany = sentMs[n + perSecond];
          return oneTooMany === undefined || oneTooMany - atMs > 1_000 - SLOT_MS;
        });
      }),
    );
  });

  it('delay no attempt for longer than a second', () => {
    const lately = createSentLastSecond();
    for (let n = 0; n < 50; n += 1) countSent(lately, 5_000);
    expect(untilRateAllowsMs(lately, 50, 5_000)).toBeLessThanOrEqual(1_000);
    expect(untilRateAllowsMs(lately, 50, 6_000)).toBe(0);
    expect(untilRateAllowsMs(lately, 51, 5_000)).toBe(0);
  });

  it('are forgotten after a pause', () => {
    const lately = createSentLastSecond();
    for (let n = 0; n < 50; n += 1) countSent(lately, 5_000);
    countSent(lately, 1e9);
    expect(untilRateAllowsMs(lately, 2, 1e9)).toBe(0);
  });

  it('allow one per second at a rate below that', () => {
    const lately = createSentLastSecond();
    expect(untilRateAllowsMs(lately, 0.2, 5_000)).toBe(0);
    countSent(lately, 5_000);
    expect(untilRateAllowsMs(lately, 0.2, 5_000)).toBe(1_000);
  });
});
