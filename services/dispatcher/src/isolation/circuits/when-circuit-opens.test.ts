import { describe, expect, it } from '@jest/globals';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import { countsAsFailure, seededSuccesses, type CircuitReport } from './when-circuit-opens.ts';

function reportOf(outcome: Outcome, more: Partial<CircuitReport> = {}): CircuitReport {
  return { outcome, asksForHold: false, recentSuccesses: 0, ...more };
}

describe('an attempt', () => {
  it.each<Outcome>(['timeout', 'http_5xx', 'http_429', 'dns_error', 'connect_error', 'tls_error'])(
    'counts as failed after %s',
    (outcome) => {
      expect(countsAsFailure(reportOf(outcome))).toBe(true);
    },
  );

  it.each<Outcome>(['success', 'http_3xx', 'http_4xx'])(
    'counts as succeeded after %s',
    (outcome) => {
      expect(countsAsFailure(reportOf(outcome))).toBe(false);
    },
  );

  it('counts as succeeded when its endpoint asks for a hold', () => {
    expect(countsAsFailure(reportOf('http_429', { asksForHold: true }))).toBe(false);
    expect(countsAsFailure(reportOf('http_5xx', { asksForHold: true }))).toBe(false);
  });

  it('does not count when nothing was sent', () => {
    expect(countsAsFailure(reportOf('aborted'))).toBeNull();
    expect(countsAsFailure(reportOf('token_failed'))).toBeNull();
  });
});

describe('a new circuit', () => {
  it('starts with the recent successes of its endpoint, up to 200', () => {
    const seeded = [0, 7, 200, 5_000].map((recentSuccesses) =>
      seededSuccesses(reportOf('timeout', { recentSuccesses })),
    );
    expect(seeded).toEqual([0, 7, 200, 200]);
  });
});
