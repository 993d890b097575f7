import { beforeEach, describe, expect, it, test } from '@jest/globals';
import fc from 'fast-check';
import {
  NOW_MS,
  observeAt,
  sampleEndpoint,
} from '../../../../test/support/isolation/observed-endpoint.ts';
import {
  advancePace,
  concurrencyOf,
  type Endpoint,
  type ObservedAttempt,
  paceOf,
  spacingMs,
  untilPaceAllowsMs,
} from './endpoint.ts';
import {
  handOverRate,
  inheritedRate,
  type LearnedRate,
  NO_RATE,
  rateAfterRefusal,
  rateAfterSuccess,
  ratePerSecond,
} from './learned-rate.ts';

const TOOK_MS = 20;

function at(endedMs: number): { startedMs: number; endedMs: number } {
  return { startedMs: endedMs - TOOK_MS, endedMs };
}

/** Evenly spaced successes at this rate, or at the learned one when that is less. */
function succeed(
  rate: LearnedRate,
  { fromMs, toMs, perSecond }: { fromMs: number; toMs: number; perSecond: number },
): LearnedRate {
  let current = rate;
  for (let nowMs = fromMs; nowMs < toMs;) {
    current = rateAfterSuccess(current, at(nowMs));
    nowMs += 1_000 / Math.min(perSecond, ratePerSecond(current, nowMs) ?? Infinity);
  }
  return current;
}

/** 300/s for five seconds, then a refusal. */
function refusedAt300(): LearnedRate {
  const before = succeed(NO_RATE, { fromMs: 0, toMs: 5_000, perSecond: 300 });
  return rateAfterRefusal(before, at(5_000), true);
}

const clock = fc.oneof(
  fc.double({ min: 0, max: 1e6 }),
  fc.constantFrom(NaN, Infinity, -Infinity, -1, Number.MAX_VALUE, -Number.MAX_VALUE),
);

describe('the learned rate, for any history', () => {
  test('is null or at least one attempt in five seconds, even with invalid clocks', () => {
    const step = fc.record({ isRefusal: fc.boolean(), startedMs: clock, endedMs: clock });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), clock, (steps, nowMs) => {
        let rate = NO_RATE;
        for (const { isRefusal, ...ended } of steps) {
          rate = isRefusal ? rateAfterRefusal(rate, ended, true) : rateAfterSuccess(rate, ended);
          expect(ratePerSecond(rate, nowMs) ?? 1).toBeGreaterThanOrEqual(0.2);
          expect(ratePerSecond(rate, nowMs) ?? 1).toBeLessThan(Infinity);
        }
      }),
    );
  });

  test('falls with a refusal, down to its floor, and not again for a second', () => {
    const step = fc.record({
      isRefusal: fc.boolean(),
      passedMs: fc.double({ min: 0, max: 3_000, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        let [rate, nowMs, loweredMs] = [NO_RATE, 1_000, -Infinity];
        for (const { isRefusal, passedMs } of steps) {
          nowMs += passedMs;
          const before = ratePerSecond(rate, nowMs);
          rate = isRefusal
            ? rateAfterRefusal(rate, at(nowMs), true)
            : rateAfterSuccess(rate, at(nowMs));
          if (!isRefusal) continue;
          const next = ratePerSecond(rate, nowMs) ?? Infinity;
          const isSameEpisode = nowMs - TOOK_MS < loweredMs + 1_000;
          if (isSameEpisode) expect(next).toBe(before);
          else if (before !== null && before > 0.2) expect(next).toBeLessThan(before);
          if (!isSameEpisode) loweredMs = nowMs;
        }
      }),
    );
  });

  test('is never lowered by a success', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 3_000, noNaN: true }), { maxLength: 100 }),
        (gaps) => {
          let [rate, nowMs] = [refusedAt300(), 6_000];
          for (const gapMs of gaps) {
            nowMs += gapMs;
            const before = ratePerSecond(rate, nowMs) ?? Infinity;
            rate = rateAfterSuccess(rate, at(nowMs));
            expect(ratePerSecond(rate, nowMs) ?? Infinity).toBeGreaterThanOrEqual(before - 1e-9);
          }
        },
      ),
    );
  });
});

describe('the learned rate of an endpoint', () => {
  test('is unknown until something is refused', () => {
    const rate = succeed(NO_RATE, { fromMs: 0, toMs: 5_000, perSecond: 300 });
    expect(ratePerSecond(rate, 5_000)).toBeNull();
  });

  test('is 95 % of the successes of the last second', () => {
    expect(ratePerSecond(refusedAt300(), 5_000)).toBeCloseTo(0.95 * 300, -1);
  });

  test('is the same after a pause of any length', () => {
    const rate = refusedAt300();
    expect(ratePerSecond(rate, 65_000)).toBe(ratePerSecond(rate, 5_000));
  });

  test('stays near the refused rate, and exceeds it after about 22 seconds', () => {
    const rates = [12, 20, 25].map((seconds) => {
      const toMs = 6_000 + seconds * 1_000;
      const rate = succeed(refusedAt300(), { fromMs: 6_000, toMs, perSecond: 600 });
      return ratePerSecond(rate, toMs) ?? 0;
    });
    expect(rates[0]).toBeCloseTo(0.98 * 300, -1);
    expect(rates[1]).toBeLessThan(300);
    expect(rates[2]).toBeGreaterThan(300);
  });

  test('returns to a limit that was found again in twice the time', () => {
    let rate = succeed(refusedAt300(), { fromMs: 6_000, toMs: 28_500, perSecond: 600 });
    rate = rateAfterRefusal(rate, at(28_500), true);
    rate = succeed(rate, { fromMs: 29_500, toMs: 49_500, perSecond: 600 });
    expect(ratePerSecond(rate, 49_500)).toBeLessThan(0.98 * 300);
  });

  test('falls little from a confirmed limit when a stall of this process caused a burst', () => {
    let rate = succeed(refusedAt300(), { fromMs: 6_000, toMs: 28_500, perSecond: 600 });
    rate = rateAfterRefusal(rate, at(28_500), true);
    rate = succeed(rate, { fromMs: 29_500, toMs: 40_000, perSecond: 600 });
    // Half a second without an attempt, and the catch-up is refused.
    rate = rateAfterRefusal(rateAfterSuccess(rate, at(40_500)), at(40_501), true);
    expect(ratePerSecond(rate, 40_501)).toBeGreaterThan(0.9 * 300);
  });

  test('finds a limit that was raised tenfold within two minutes', () => {
    const window = { fromMs: 6_000, toMs: 126_000, perSecond: 3_000 };
    const rate = succeed(refusedAt300(), window);
    expect(ratePerSecond(rate, 126_000) ?? Infinity).toBeGreaterThanOrEqual(3_000);
  });

  test('is forgotten when it has limited nothing for two minutes', () => {
    const rate = succeed(refusedAt300(), { fromMs: 6_000, toMs: 126_000, perSecond: 100 });
    expect(ratePerSecond(rate, 126_000)).toBeNull();
  });

  test('starts at 10/s when the very first attempt is refused', () => {
    const refused = rateAfterRefusal(NO_RATE, at(1_000), true);
    expect(ratePerSecond(refused, 1_000)).toBeCloseTo(9.5);
    const later = succeed(refused, { fromMs: 2_000, toMs: 8_000, perSecond: 600 });
    expect(ratePerSecond(later, 8_000) ?? Infinity).toBeGreaterThan(300);
  });

  test('halves while nothing succeeds, and is back at its plateau 12 s after the first success', () => {
    let rate = refusedAt300();
    for (let second = 7; second < 40; second += 2)
      rate = rateAfterRefusal(rate, at(second * 1_000), true);
    expect(ratePerSecond(rate, 40_000)).toBe(0.2);
    const back = succeed(rate, { fromMs: 41_000, toMs: 54_000, perSecond: 600 });
    expect(ratePerSecond(back, 54_000)).toBeGreaterThan(0.9 * 294);
  });

  test('is not lowered by a few refusals that ask for no pause, however long they come', () => {
    let rate = NO_RATE;
    for (let n = 1; n <= 10_000; n += 1) {
      const ended = at(n * 2);
      rate = n % 100 === 0 ? rateAfterRefusal(rate, ended, false) : rateAfterSuccess(rate, ended);
    }
    expect(ratePerSecond(rate, 20_000)).toBeNull();
    expect(ratePerSecond(rateAfterRefusal(rate, at(20_000), true), 20_000)).not.toBeNull();
  });

  test('is lowered when more than 3 % are refused', () => {
    let rate = NO_RATE;
    for (let n = 1; n <= 1_000; n += 1) {
      const ended = at(n * 2);
      rate = n % 20 === 0 ? rateAfterRefusal(rate, ended, false) : rateAfterSuccess(rate, ended);
    }
    expect(ratePerSecond(rate, 2_000)).not.toBeNull();
  });
});

describe('a rate that is handed over', () => {
  test('is the same at the new owner, whose clock is another one, and grows there with a success', () => {
    const rate = succeed(refusedAt300(), { fromMs: 5_100, toMs: 8_000, perSecond: 1_000 });
    const here = inheritedRate(handOverRate(rate, 8_000), 99_000);
    const known = ratePerSecond(rate, 8_000) ?? 0;
    expect(known).toBeGreaterThan(0);
    expect(ratePerSecond(here, 99_000)).toBeCloseTo(known, 6);
    expect(ratePerSecond(here, 199_000)).toBeCloseTo(known, 6);
    const later = succeed(here, { fromMs: 99_100, toMs: 101_000, perSecond: 1_000 });
    expect(ratePerSecond(later, 101_000)).toBeGreaterThan(known);
  });

  test('is lowered by a refusal, not by those of its first second', () => {
    const here = inheritedRate(handOverRate(refusedAt300(), 5_000), 99_000);
    expect(rateAfterRefusal(here, at(99_900), true).bound).toEqual(here.bound);
    const lowered = rateAfterRefusal(here, at(100_100), true);
    expect(ratePerSecond(lowered, 100_100)).toBeLessThan(ratePerSecond(here, 100_100) ?? 0);
  });

  test('is none without a bound, and at least one attempt in five seconds with any', () => {
    expect(handOverRate(NO_RATE, 1_000)).toBeNull();
    expect(inheritedRate(null, 1_000)).toBe(NO_RATE);
    const none = { base: 0, plateau: 0, grownMs: 0, confirmed: 9 };
    expect(ratePerSecond(inheritedRate(none, 1_000), 1_000)).toBe(0.2);
  });
});

describe('pace', () => {
  let endpoint: Endpoint;

  beforeEach(() => {
    endpoint = sampleEndpoint();
  });

  const observe = (tookMs: number, observed?: Partial<ObservedAttempt>): void => {
    observeAt(endpoint, tookMs, observed);
  };

  const REFUSED = { outcome: 'http_429', statusCode: 429 } as const;

  describe('the pace of an endpoint', () => {
    it('is that of the webhook, or the learned one when that is less', () => {
      endpoint.rateLimitPerSecond = 1_000;
      expect(paceOf(endpoint, NOW_MS)).toBe(1_000);
      observe(10, { ...REFUSED, retryAfterMs: 1_000 });
      const learned = paceOf(endpoint, NOW_MS);
      expect(learned).toBeLessThan(1_000);
      endpoint.rateLimitPerSecond = 0.1;
      expect(paceOf(endpoint, NOW_MS)).toBe(0.1);
    });

    it('spaces attempts evenly', () => {
      endpoint.rateLimitPerSecond = 4;
      advancePace(endpoint, NOW_MS, false);
      advancePace(endpoint, NOW_MS, true);
      expect(endpoint.nextPacedMs).toBe(NOW_MS + 500);
    });

    it('catches up on a late timer by 200 ms at most, and only while other attempts wait', () => {
      endpoint.rateLimitPerSecond = 10;
      endpoint.nextPacedMs = NOW_MS - 30;
      advancePace(endpoint, NOW_MS, true);
      expect(endpoint.nextPacedMs).toBe(NOW_MS + 70);
      endpoint.nextPacedMs = NOW_MS - 5_000;
      advancePace(endpoint, NOW_MS, true);
      expect(endpoint.nextPacedMs).toBe(NOW_MS - 100);
      endpoint.nextPacedMs = NOW_MS - 5_000;
      advancePace(endpoint, NOW_MS, false);
      expect(endpoint.nextPacedMs).toBe(NOW_MS + 100);
    });

    it('has no more than the rate in any second, however much there is to catch up on', () => {
      endpoint.rateLimitPerSecond = 10;
      for (let n = 0; n < 10; n += 1) advancePace(endpoint, NOW_MS, true);
      endpoint.nextPacedMs = NOW_MS;
      expect(untilPaceAllowsMs(endpoint, NOW_MS)).toBe(1_000);
      expect(untilPaceAllowsMs(endpoint, NOW_MS + 1_000)).toBe(0);
    });

    it('does not count attempts when there is none', () => {
      advancePace(endpoint, NOW_MS, true);
      expect(endpoint.nextPacedMs).toBe(0);
    });
  });

  describe('the spacing of an endpoint', () => {
    it('assumes 100 ms for each attempt before one has ended', () => {
      expect(spacingMs(endpoint, NOW_MS)).toBe(100 / 16);
    });

    it('goes by its quickest responses, since our own stalls make all of them look slow', () => {
      observe(160);
      observe(900);
      expect(endpoint.quickestMs).toBeCloseTo(160 + 740 * 0.02);
      observe(80);
      expect(spacingMs(endpoint, NOW_MS)).toBe(80 / concurrencyOf(endpoint));
    });

    it('follows a lasting change within some dozens of responses', () => {
      observe(100);
      for (let n = 0; n < 35; n += 1) observe(300);
      expect(endpoint.quickestMs).toBeGreaterThan(200);
    });

    it('is never shorter than its rate allows', () => {
      observe(16);
      endpoint.rateLimitPerSecond = 0.5;
      expect(spacingMs(endpoint, NOW_MS)).toBe(2_000);
    });

    it('goes by the rate that is expected after an outage, not by that of probes in it', () => {
      for (let n = 0; n < 200; n += 1) observe(10, { endedMs: NOW_MS + n * 10 });
      const refusedMs = (n: number): number => NOW_MS + 2_000 + n * 1_500;
      for (let n = 0; n < 20; n += 1) observe(10, { ...REFUSED, endedMs: refusedMs(n) });
      const nowMs = refusedMs(20);
      expect(paceOf(endpoint, nowMs)).toBeLessThan(1);
      expect(1_000 / spacingMs(endpoint, nowMs)).toBeCloseTo(98, 0);
    });

    it('expects ten attempts a second of an endpoint that has only refused', () => {
      for (let n = 0; n < 20; n += 1) observe(10, { ...REFUSED, endedMs: NOW_MS + n * 1_500 });
      expect(spacingMs(endpoint, NOW_MS + 30_000)).toBe(100);
    });
  });
});
