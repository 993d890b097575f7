import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type AttemptView,
  type CircuitView,
  decide,
  type Decision,
  type DispatcherView,
  type EndpointView,
  isReservationNear,
  longestWaitMs,
  PROBE_WAIT_MS,
  REASONS,
} from './gate.ts';

const ms = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 100_000 }));
const few = fc.nat(20);
const attempt: fc.Arbitrary<AttemptView> = fc.record({
  queue: fc.constantFrom('first', 'retry', 'slow'),
  reservedInMs: ms,
  precedesBooked: fc.boolean(),
  ahead: fc.oneof(fc.constant(0), few),
  lacksMemory: fc.boolean(),
});
const circuit: fc.Arbitrary<CircuitView> = fc.oneof(
  fc.record({ kind: fc.constant('closed' as const) }),
  fc.record({ kind: fc.constant('open' as const), deferForMs: ms }),
  fc.record({ kind: fc.constant('probing' as const), sinceMs: fc.nat(1_000), deferForMs: ms }),
);
const endpoint: fc.Arbitrary<EndpointView> = fc.record({
  circuit: fc.oneof(fc.constant({ kind: 'closed' as const }), circuit),
  isSlow: fc.boolean(),
  hasRateLimit: fc.boolean(),
  isPaced: fc.boolean(),
  pauseInMs: ms,
  paceInMs: ms,
  hostInMs: ms,
  bookedInMs: ms,
  running: fc.record({ first: few, retry: few, slow: few }),
  waitingSlow: few,
  wasSlowLast: fc.boolean(),
  concurrency: fc.integer({ min: 1, max: 64 }),
  spacingMs: fc.integer({ min: 1, max: 5_000 }),
});
const dispatcher: fc.Arbitrary<DispatcherView> = fc.record({
  hasFreeSlot: fc.boolean(),
  maySlowUseFast: fc.boolean(),
  maxWaitMs: fc.integer({ min: 1_000, max: 30_000 }),
  isOverloaded: fc.boolean(),
});

function always(holds: (a: AttemptView, e: EndpointView, d: DispatcherView) => void): void {
  fc.assert(fc.property(attempt, endpoint, dispatcher, holds), { numRuns: 500 });
}

const reasonOf = (decision: Decision): string | null =>
  decision.kind === 'now' ? null : decision.because;

describe('the gate, for any attempt, endpoint and dispatcher', () => {
  it('never moves or defers an attempt because this dispatcher is busy', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      if (reasonOf(decision) === 'busy') expect(decision.kind).toBe('wait');
    });
  });

  it('makes no attempt during a pause or before the pace allows it', () => {
    always((a, e, d) => {
      if (e.pauseInMs + e.paceInMs + e.hostInMs > 0) expect(decide(a, e, d).kind).not.toBe('now');
    });
  });

  it('makes no attempt while the circuit is not closed', () => {
    always((a, e, d) => {
      if (e.circuit.kind !== 'closed') expect(decide(a, e, d).kind).not.toBe('now');
    });
  });

  it('makes no attempt beyond the slots of the endpoint, without a slot of ours, or before those ahead', () => {
    always((a, e, d) => {
      if (decide(a, e, d).kind !== 'now') return;
      const { first, retry, slow } = e.running;
      expect(first + retry + slow).toBeLessThan(e.concurrency);
      expect([d.hasFreeSlot, a.ahead]).toEqual([true, 0]);
    });
  });

  it('moves only attempts of slow endpoints to the slow lane, none that came from it or has a rate limit', () => {
    always((a, e, d) => {
      if (decide(a, e, d).kind !== 'slow_lane') return;
      expect([e.isSlow, e.hasRateLimit, a.queue === 'slow']).toEqual([true, false, false]);
    });
  });

  it('lets no attempt wait for its endpoint longer than allowed, and defers only for longer than that', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      const isOfEndpoint = ['hold', 'pace', 'host', 'concurrency'].includes(
        reasonOf(decision) ?? '',
      );
      if (!isOfEndpoint) return;
      if (decision.kind === 'defer')
        expect(decision.inMs).toBeGreaterThan(longestWaitMs(a, d.maxWaitMs));
      if (decision.kind === 'wait')
        expect(e.pauseInMs).toBeLessThanOrEqual(longestWaitMs(a, d.maxWaitMs));
    });
  });

  it('wakes an attempt that waits for time alone when that time is over', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      if (decision.kind !== 'wait') return;
      const wakes = {
        hold: e.pauseInMs,
        pace: e.paceInMs,
        host: e.hostInMs,
        circuit: e.circuit.kind === 'probing' ? PROBE_WAIT_MS - e.circuit.sinceMs : NaN,
      };
      expect(decision.wakeInMs).toBeGreaterThan(0);
      const expected = {
        concurrency: Infinity,
        memory: Infinity,
        busy: Infinity,
        turn: NaN,
        slow: NaN,
        ...wakes,
      };
      expect(decision.wakeInMs).toBe(expected[decision.because]);
    });
  });

  it('defers an attempt to its reservation while that is far, and something limits its endpoint', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      const isLimited = e.isPaced || e.pauseInMs > 0 || e.circuit.kind !== 'closed';
      const isFar = isLimited && !isReservationNear(a.reservedInMs, d.maxWaitMs);
      expect(reasonOf(decision) === 'turn').toBe(isFar);
      if (isFar) expect(decision).toEqual({ kind: 'defer', because: 'turn', inMs: a.reservedInMs });
    });
  });

  it('never evicts an attempt that would have waited because a slot is free or the queue shorter', () => {
    always((a, e, d) => {
      const before = decide({ ...a, ahead: a.ahead + 1 }, e, { ...d, hasFreeSlot: false });
      const after = decide(a, e, { ...d, hasFreeSlot: true });
      if (before.kind === 'wait') expect(['now', 'wait']).toContain(after.kind);
    });
  });

  it('gives only reasons that the metrics know', () => {
    always((a, e, d) => {
      const reason = reasonOf(decide(a, e, d));
      if (reason !== null) expect(REASONS).toContain(reason);
    });
  });
});
