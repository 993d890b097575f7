import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type ConcurrencyLimit,
  type EndedAttempt,
  handOverLimit,
  inheritedLimit,
  initialLimit,
  limitAfter,
  type LimitBounds,
} from './concurrency-limit.ts';

const BOUNDS: LimitBounds = { floor: 1, start: 16, ceiling: 1_000 };

/** Round trips one after the other; in each, all allowed attempts end together. */
function after(
  limit: ConcurrencyLimit,
  roundTrips: number,
  each: Partial<EndedAttempt> & { ms?: number; fromMs?: number },
): ConcurrencyLimit {
  const { ms = 20, fromMs = 0, ...attempt } = each;
  let current = limit;
  for (let trip = 0; trip < roundTrips; trip += 1) {
    const running = Math.floor(current.value);
    const startedMs = fromMs + trip * ms + 1;
    const ended = { startedMs, endedMs: startedMs + ms - 1, running, isLimited: true };
    for (let index = 0; index < running; index += 1) {
      current = limitAfter(current, { verdict: 'success', ...ended, ...attempt }, BOUNDS);
    }
  }
  return current;
}

const clock = fc.oneof(
  fc.double({ min: 0, max: 1e6 }),
  fc.constantFrom(NaN, Infinity, -Infinity, -1, 0, Number.MAX_VALUE, -Number.MAX_VALUE),
);
const verdict = fc.constantFrom('success', 'congested', 'neutral');
const oddAttempt: fc.Arbitrary<EndedAttempt> = fc.record({
  verdict,
  startedMs: clock,
  endedMs: clock,
  running: fc.oneof(fc.integer({ min: -1, max: 2_000 }), fc.constant(NaN)),
  isLimited: fc.boolean(),
});
/** What a dispatcher sees: increasing times, latencies of all kinds. */
const history = fc
  .array(
    fc.record({
      verdict,
      passedMs: fc.double({ min: 0, max: 300, noNaN: true }),
      tookMs: fc.double({ min: 0, max: 3_000, noNaN: true }),
      running: fc.integer({ min: 1, max: 1_200 }),
      isLimited: fc.boolean(),
    }),
    { maxLength: 300 },
  )
  .map((steps) => {
    let nowMs = 10_000;
    return steps.map(({ passedMs, tookMs, ...rest }): EndedAttempt => {
      nowMs += passedMs;
      return { ...rest, startedMs: nowMs - tookMs, endedMs: nowMs };
    });
  });

describe('the limit, for any history [security]', () => {
  test('keeps its bounds and stays a number, even with invalid clocks and counts', () => {
    fc.assert(
      fc.property(fc.array(oddAttempt, { maxLength: 200 }), (attempts) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          limit = limitAfter(limit, attempt, BOUNDS);
          expect(limit.value).toBeGreaterThanOrEqual(BOUNDS.floor);
          expect(limit.value).toBeLessThanOrEqual(BOUNDS.ceiling);
        }
      }),
    );
  });

  test('follows changed bounds with the next attempt of any kind', () => {
    const grown = after(initialLimit(BOUNDS), 10, {});
    for (const kind of ['success', 'congested', 'neutral'] as const) {
      const attempt = { verdict: kind, startedMs: 1_000, endedMs: 1_020, running: 9 };
      const narrow = { floor: 1, start: 16, ceiling: 10 };
      expect(limitAfter(grown, { ...attempt, isLimited: true }, narrow).value).toBe(10);
    }
  });

  test('is never raised by a congested attempt, and not moved by a neutral one', () => {
    fc.assert(
      fc.property(history, (attempts) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          const next = limitAfter(limit, attempt, BOUNDS);
          if (attempt.verdict === 'congested') expect(next.value).toBeLessThanOrEqual(limit.value);
          if (attempt.verdict === 'neutral') expect(next).toBe(limit);
          limit = next;
        }
      }),
    );
  });

  test('is never lowered by a success while the latency does not rise', () => {
    fc.assert(
      fc.property(history, fc.double({ min: 0, max: 5_000, noNaN: true }), (attempts, ms) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          const next = limitAfter(limit, { ...attempt, startedMs: attempt.endedMs - ms }, BOUNDS);
          if (attempt.verdict === 'success') {
            expect(next.value).toBeGreaterThanOrEqual(limit.value);
          }
          limit = next;
        }
      }),
    );
  });

  test('never falls below its start through latency alone', () => {
    fc.assert(
      fc.property(history, (attempts) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          limit = limitAfter(limit, { ...attempt, verdict: 'success' }, BOUNDS);
          expect(limit.value).toBeGreaterThanOrEqual(BOUNDS.start);
        }
      }),
    );
  });

  test('grows only while attempts wait for a slot and most slots are taken', () => {
    fc.assert(
      fc.property(history, (attempts) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          const next = limitAfter(limit, attempt, BOUNDS);
          const isFull = attempt.isLimited && attempt.running * 2 >= limit.value;
          if (!isFull) expect(next.value).toBeLessThanOrEqual(limit.value);
          limit = next;
        }
      }),
    );
  });

  test('decreases once for all attempts that started before the decrease', () => {
    fc.assert(
      fc.property(history, (attempts) => {
        let limit = initialLimit(BOUNDS);
        for (const attempt of attempts) {
          const next = limitAfter(limit, attempt, BOUNDS);
          if (attempt.startedMs <= limit.decreasedMs) expect(next.value).toBe(limit.value);
          limit = next;
        }
      }),
    );
  });
});

describe('the limit of an endpoint [security]', () => {
  test('has 180 slots after six round trips with the latency it always had', () => {
    expect(after(initialLimit(BOUNDS), 6, { ms: 200 }).value).toBeGreaterThanOrEqual(180);
  });

  test('takes 30 % off when the second refusal in a row comes', () => {
    const grown = after(initialLimit(BOUNDS), 5, {});
    const refused = { verdict: 'congested', startedMs: 200, endedMs: 201 } as const;
    const values = [1, 2, 3, 4].reduce<ConcurrencyLimit[]>(
      (limits) => [
        ...limits,
        limitAfter(limits.at(-1) ?? grown, { ...refused, running: 50, isLimited: true }, BOUNDS),
      ],
      [],
    );
    const shares = values.map(({ value }) => Number((value / grown.value).toFixed(3)));
    expect(shares).toEqual([1, 0.7, 0.7, 0.7]);
  });

  test('goes down to the floor when everything is refused, and is soon back where it was', () => {
    const grown = after(initialLimit(BOUNDS), 6, { ms: 200 });
    const down = after(grown, 200, { ms: 2, fromMs: 2_000, verdict: 'congested' });
    expect(down.value).toBe(1);
    const back = after(down, 14, { ms: 200, fromMs: 3_000 });
    expect(back.value).toBeGreaterThanOrEqual(grown.value * 0.9);
  });

  test('gives up half within three round trips when the latency triples with the number of attempts', () => {
    const grown = after(initialLimit(BOUNDS), 6, { ms: 100 });
    const queued = after(grown, 3, { ms: 300, fromMs: 1_000 });
    expect(queued.value).toBeCloseTo(grown.value / 2, -1);
  });

  test('stays when the latency rises by some tens of milliseconds, as stalls of this process cause', () => {
    const grown = after(initialLimit(BOUNDS), 10, { ms: 5 });
    const late = after(grown, 20, { ms: 50, fromMs: 1_000, isLimited: false });
    expect(late.value).toBe(grown.value);
  });
});

describe('a limit that is handed over', () => {
  const grown = after(initialLimit(BOUNDS), 20, { ms: 20 });
  const failed = after(grown, 1, { verdict: 'congested', fromMs: 1_000 });

  test('continues with the value, the threshold and the lowest latency of the former owner', () => {
    const inherited = inheritedLimit(handOverLimit(failed), BOUNDS, 50_000);
    expect(handOverLimit(inherited)).toEqual(handOverLimit(failed));
    expect(handOverLimit(failed)).toMatchObject({
      value: failed.value,
      slowStartThreshold: failed.slowStartThreshold,
      lowestMs: 19,
    });
  });

  test('grows beyond the threshold no faster than at the former owner', () => {
    const next = { ms: 20, fromMs: 2_000 };
    const here = after(inheritedLimit(handOverLimit(failed), BOUNDS, 2_000), 3, next);
    expect(here.value).toBeLessThanOrEqual(after(failed, 3, next).value);
  });

  test('stays within the bounds of the new owner, whatever the former one had', () => {
    const anything = fc.record({
      value: fc.double({ min: 0, noNaN: true }),
      slowStartThreshold: fc.option(fc.double({ min: 0, noNaN: true })),
      lowestMs: fc.option(fc.double({ min: 0, noNaN: true })),
    });
    fc.assert(
      fc.property(anything, history, (handedOver, attempts) => {
        let limit = inheritedLimit(handedOver, BOUNDS, 10_000);
        expect(limit.value).toBeGreaterThanOrEqual(BOUNDS.floor);
        expect(limit.value).toBeLessThanOrEqual(BOUNDS.ceiling);
        for (const attempt of attempts) limit = limitAfter(limit, attempt, BOUNDS);
        expect(limit.value).toBeGreaterThanOrEqual(BOUNDS.floor);
        expect(limit.value).toBeLessThanOrEqual(BOUNDS.ceiling);
      }),
    );
  });
});
