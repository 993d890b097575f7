import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { countSent, createSentLately, untilSecondHasRoomMs } from './sent-lately.ts';

const SLOT_MS = 10;

/** Sends as soon as it may, after each of these gaps; answers when each was sent. */
function sendAfter(gapsMs: readonly number[], perSecond: number): number[] {
  const lately = createSentLately();
  let nowMs = 1_000_000;
  return gapsMs.map((gapMs) => {
    nowMs += gapMs;
    nowMs += untilSecondHasRoomMs(lately, perSecond, nowMs);
    countSent(lately, nowMs);
    return nowMs;
  });
}

describe('what was sent in the last second', () => {
  it('never exceeds the rate, wherever the second begins', () => {
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

  it('holds nobody back for longer than a second', () => {
    const lately = createSentLately();
    for (let n = 0; n < 50; n += 1) countSent(lately, 5_000);
    expect(untilSecondHasRoomMs(lately, 50, 5_000)).toBeLessThanOrEqual(1_000);
    expect(untilSecondHasRoomMs(lately, 50, 6_000)).toBe(0);
    expect(untilSecondHasRoomMs(lately, 51, 5_000)).toBe(0);
  });

  it('is forgotten after any pause', () => {
    const lately = createSentLately();
    for (let n = 0; n < 50; n += 1) countSent(lately, 5_000);
    countSent(lately, 1e9);
    expect(untilSecondHasRoomMs(lately, 2, 1e9)).toBe(0);
  });

  it('lets one through each second at a rate below that', () => {
    const lately = createSentLately();
    expect(untilSecondHasRoomMs(lately, 0.2, 5_000)).toBe(0);
    countSent(lately, 5_000);
    expect(untilSecondHasRoomMs(lately, 0.2, 5_000)).toBe(1_000);
  });
});
