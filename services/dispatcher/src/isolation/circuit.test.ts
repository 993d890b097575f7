import { describe, expect, it } from '@jest/globals';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import {
  type CircuitBlock,
  type CircuitReport,
  circuitViewOf,
  countsAsFailure,
  seededSuccesses,
} from './circuit.ts';
import type { CircuitView } from './gate.ts';

function reportOf(outcome: Outcome, more: Partial<CircuitReport> = {}): CircuitReport {
  return { outcome, asksForPause: false, recentSuccesses: 0, ...more };
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

  it('counts as succeeded when its endpoint asks for a pause', () => {
    expect(countsAsFailure(reportOf('http_429', { asksForPause: true }))).toBe(false);
    expect(countsAsFailure(reportOf('http_5xx', { asksForPause: true }))).toBe(false);
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

const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const open = (nowMs = NOW_MS): CircuitBlock => ({ untilMs: nowMs + 30_000, probeSinceMs: null });

function deferralOf(view: CircuitView): number {
  if (view.kind === 'closed') throw new Error('the circuit is closed');
  return view.deferForMs;
}

describe('an attempt at an endpoint', () => {
  it('sees a closed circuit while nothing blocks it', () => {
    expect(circuitViewOf(null, null, NOW_MS)).toEqual({ kind: 'closed' });
    expect(circuitViewOf(null, NOW_MS - HOUR_MS, NOW_MS)).toEqual({ kind: 'closed' });
  });

  it('is deferred until the probe when it meets an open circuit for the first time', () => {
    expect(circuitViewOf(open(), null, NOW_MS)).toEqual({ kind: 'open', deferForMs: 30_000 });
  });

  it('is deferred for three times as long as it has waited, within twelve hours', () => {
    const waited = [1_000, 60_000, HOUR_MS, 6 * HOUR_MS];
    const views = waited.map((ms) => circuitViewOf(open(), NOW_MS - ms, NOW_MS));
    expect(views.map(deferralOf)).toEqual([30_000, 180_000, 3 * HOUR_MS, 6 * HOUR_MS]);
  });

  it('comes back a few times a day, and is made whatever the circuit says after twelve hours', () => {
    const waits: number[] = [];
    let nowMs = NOW_MS;
    let view = circuitViewOf(open(nowMs), null, nowMs);
    while (view.kind !== 'closed') {
      waits.push(view.deferForMs);
      nowMs += view.deferForMs;
      view = circuitViewOf(open(nowMs), NOW_MS, nowMs);
    }
    expect(waits.length).toBeLessThanOrEqual(8);
    expect(nowMs - NOW_MS).toBeGreaterThanOrEqual(12 * HOUR_MS);
    expect(nowMs - NOW_MS).toBeLessThanOrEqual(12 * HOUR_MS + 30_000);
  });

  it('sees for how long a probe has been under way', () => {
    const probing = { untilMs: NOW_MS + 30_000, probeSinceMs: NOW_MS - 200 };
    expect(circuitViewOf(probing, null, NOW_MS)).toEqual({
      kind: 'probing',
      sinceMs: 200,
      deferForMs: 30_000,
    });
  });

  it('is made even during a probe after twelve hours', () => {
    const probing = { untilMs: NOW_MS, probeSinceMs: NOW_MS };
    const view = circuitViewOf(probing, NOW_MS - 12 * HOUR_MS, NOW_MS);
    expect(view).toEqual({ kind: 'closed' });
  });
});
