import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  NOW_MS,
  observeAt,
  sampleEndpoint,
} from '../../../../test/support/isolation/observed-endpoint.ts';
import {
  asksForPause,
  concurrencyOf,
  countSent,
  createSentLastSecond,
  type Endpoint,
  isSlow,
  type ObservedAttempt,
  paceOf,
  untilRateAllowsMs,
} from './endpoint.ts';

describe('endpoint', () => {
  let endpoint: Endpoint;

  beforeEach(() => {
    endpoint = sampleEndpoint();
  });

  const observe = (tookMs: number, observed?: Partial<ObservedAttempt>): void => {
    observeAt(endpoint, tookMs, observed);
  };

  const refused = (retryAfterMs: number | null): Partial<ObservedAttempt> => ({
    outcome: 'http_429',
    statusCode: 429,
    retryAfterMs,
  });

  describe('a new endpoint', () => {
    it('has the start limit, no rate, no pause, and is not slow', () => {
      expect(concurrencyOf(endpoint)).toBe(16);
      expect(paceOf(endpoint, NOW_MS)).toBeNull();
      expect(isSlow(endpoint, NOW_MS)).toBe(false);
      expect(endpoint.pausedUntilMs).toBe(0);
    });
  });

  describe('an endpoint is slow', () => {
    it('after an attempt of a second, until one is quicker', () => {
      observe(999);
      expect(isSlow(endpoint, NOW_MS)).toBe(false);
      observe(1_000);
      expect(isSlow(endpoint, NOW_MS)).toBe(true);
      observe(10);
      expect(isSlow(endpoint, NOW_MS)).toBe(false);
    });

    it('an endpoint stays slow for a minute without traffic', () => {
      observe(1_000);
      expect(isSlow(endpoint, NOW_MS + 59_999)).toBe(true);
      expect(isSlow(endpoint, NOW_MS + 60_000)).toBe(false);
    });

    it('while an attempt is overdue', () => {
      endpoint.overdue = 1;
      observe(10);
      expect(isSlow(endpoint, NOW_MS)).toBe(true);
    });
  });

  describe('the pause that an endpoint asks for', () => {
    it('is honoured with a 429 or 503, and with nothing else', () => {
      observe(10, { outcome: 'http_4xx', statusCode: 404, retryAfterMs: 9_000 });
      expect(endpoint.pausedUntilMs).toBe(0);
      observe(10, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 1_000 });
      expect(endpoint.pausedUntilMs).toBe(NOW_MS + 1_000);
      observe(10, refused(5_000));
      expect(endpoint.pausedUntilMs).toBe(NOW_MS + 5_000);
    });

    it('is not shortened by a later response', () => {
      observe(10, refused(60_000));
      observe(10, refused(1_000));
      observe(10);
      expect(endpoint.pausedUntilMs).toBe(NOW_MS + 60_000);
    });

    it('is none with 429 without Retry-After, of which many only lower the rate', () => {
      observe(10, refused(null));
      expect([endpoint.pausedUntilMs, paceOf(endpoint, NOW_MS)]).toEqual([0, null]);
      for (let n = 0; n < 8; n += 1) observe(10, refused(null));
      expect(endpoint.pausedUntilMs).toBe(0);
      expect(paceOf(endpoint, NOW_MS)).not.toBeNull();
    });

    it('is none with a Retry-After of 0, which counts as absent', () => {
      observe(10, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 0 });
      expect(endpoint.pausedUntilMs).toBe(0);
      expect(paceOf(endpoint, NOW_MS)).toBeNull();
      expect(asksForPause({ statusCode: 503, retryAfterMs: 0 })).toBe(false);
      expect(asksForPause({ statusCode: 429, retryAfterMs: 0 })).toBe(false);
      expect(asksForPause({ statusCode: 503, retryAfterMs: 1 })).toBe(true);
    });

    it('lowers the rate with a 503, which a 503 without one does not', () => {
      observe(10, { outcome: 'http_5xx', statusCode: 503 });
      expect(paceOf(endpoint, NOW_MS)).toBeNull();
      observe(10, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 1_000 });
      expect(paceOf(endpoint, NOW_MS)).not.toBeNull();
    });
  });
});

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
