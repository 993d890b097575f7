import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decide, PROBE_PATIENCE_MS, REASONS, type Decision } from './gate.ts';
import type { AttemptView, CircuitView, DispatcherView, EndpointView } from './views.ts';
import { isNear, longestWaitMs } from './expected-wait.ts';

const ms = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 100_000 }));
const few = fc.nat(20);
const attempt: fc.Arbitrary<AttemptView> = fc.record({
  lane: fc.constantFrom('first', 'retry', 'slow'),
  turnInMs: ms,
  isInFront: fc.boolean(),
  ahead: fc.oneof(fc.constant(0), few),
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
  holdInMs: ms,
  paceInMs: ms,
  bookedInMs: ms,
  running: fc.record({ first: few, retry: few, slow: few }),
  waitingSlow: few,
  wasSlowLast: fc.boolean(),
  concurrency: fc.integer({ min: 1, max: 64 }),
  spacingMs: fc.integer({ min: 1, max: 5_000 }),
});
const dispatcher: fc.Arbitrary<DispatcherView> = fc.record({
  hasPlace: fc.boolean(),
  maySlowTry: fc.boolean(),
  maxWaitMs: fc.integer({ min: 1_000, max: 30_000 }),
  isOverloaded: fc.boolean(),
});

function always(holds: (a: AttemptView, e: EndpointView, d: DispatcherView) => void): void {
  fc.assert(fc.property(attempt, endpoint, dispatcher, holds), { numRuns: 500 });
}

const reasonOf = (decision: Decision): string | null =>
  decision.kind === 'now' ? null : decision.because;

describe('whatever an attempt, its endpoint and the dispatcher look like', () => {
  it('nothing leaves because this dispatcher is busy', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      if (reasonOf(decision) === 'busy') expect(decision.kind).toBe('wait');
    });
  });

  it('nothing goes inside a pause, or before its rate allows it', () => {
    always((a, e, d) => {
      if (e.holdInMs > 0 || e.paceInMs > 0) expect(decide(a, e, d).kind).not.toBe('now');
    });
  });

  it('nothing goes while the circuit is not closed', () => {
    always((a, e, d) => {
      if (e.circuit.kind !== 'closed') expect(decide(a, e, d).kind).not.toBe('now');
    });
  });

  it('nothing goes beyond the places of its endpoint, or without a place, or before others', () => {
    always((a, e, d) => {
      if (decide(a, e, d).kind !== 'now') return;
      const { first, retry, slow } = e.running;
      expect(first + retry + slow).toBeLessThan(e.concurrency);
      expect([d.hasPlace, a.ahead]).toEqual([true, 0]);
    });
  });

  it('only a slow endpoint sends to the slow lane, and never what is there or has a rate limit', () => {
    always((a, e, d) => {
      if (decide(a, e, d).kind !== 'slow lane') return;
      expect([e.isSlow, e.hasRateLimit, a.lane === 'slow']).toEqual([true, false, false]);
    });
  });

  it('nothing waits for its endpoint for longer than it may, and what is deferred comes back later', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      const isOfEndpoint = ['hold', 'pace', 'concurrency'].includes(reasonOf(decision) ?? '');
      if (!isOfEndpoint) return;
      if (decision.kind === 'defer')
        expect(decision.inMs).toBeGreaterThan(longestWaitMs(a, d.maxWaitMs));
      if (decision.kind === 'wait')
        expect(e.holdInMs).toBeLessThanOrEqual(longestWaitMs(a, d.maxWaitMs));
    });
  });

  it('what waits for time alone is woken, and no later than that time is over', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      if (decision.kind !== 'wait') return;
      const wakes = {
        hold: e.holdInMs,
        pace: e.paceInMs,
        circuit: e.circuit.kind === 'probing' ? PROBE_PATIENCE_MS - e.circuit.sinceMs : NaN,
      };
      expect(decision.wakeInMs).toBeGreaterThan(0);
      const expected = { concurrency: Infinity, busy: Infinity, turn: NaN, slow: NaN, ...wakes };
      expect(decision.wakeInMs).toBe(expected[decision.because]);
    });
  });

  it('a turn that is far is kept, whatever else there is', () => {
    always((a, e, d) => {
      const decision = decide(a, e, d);
      const isFar = !isNear(a.turnInMs, d.maxWaitMs);
      expect(reasonOf(decision) === 'turn').toBe(isFar);
      if (isFar) expect(decision).toEqual({ kind: 'defer', because: 'turn', inMs: a.turnInMs });
    });
  });

  it('a free place and a shorter queue never turn an attempt away that would have waited', () => {
    always((a, e, d) => {
      const before = decide({ ...a, ahead: a.ahead + 1 }, e, { ...d, hasPlace: false });
      const after = decide(a, e, { ...d, hasPlace: true });
      if (before.kind === 'wait') expect(['now', 'wait']).toContain(after.kind);
    });
  });

  it('the reasons are those of the metrics', () => {
    always((a, e, d) => {
      const reason = reasonOf(decide(a, e, d));
      if (reason !== null) expect(REASONS).toContain(reason);
    });
  });
});
