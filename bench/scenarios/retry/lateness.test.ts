import { describe, expect, test } from '@jest/globals';
import { type Retry, latenessFigures, createRetryTracker } from './lateness.ts';

const STARTED_AT_MS = 1_000_000;
const DUE_AT_MS = STARTED_AT_MS + 5_000;

/** Returns a retry that was released this many milliseconds after it was due; null for never. */
function retry(releasedAfterMs: number | null, changed: Partial<Retry> = {}): Retry {
  const releasedAtMs = DUE_AT_MS + (releasedAfterMs ?? 0);
  return {
    endedAtMs: STARTED_AT_MS,
    dueAtMs: DUE_AT_MS,
    storedAtMs: STARTED_AT_MS + 8,
    release: releasedAfterMs === null ? null : { releasedAtMs, receivedAtMs: releasedAtMs + 4 },
    count: releasedAfterMs === null ? 0 : 1,
    ...changed,
  };
}

describe('the lateness of retries', () => {
  test('counts from the due time, with the reading time separate', () => {
    const figures = latenessFigures([retry(2), retry(30)], STARTED_AT_MS);
    expect(figures.releasedAfterMs).toMatchObject({ count: 2, p50: 2, max: 30 });
    expect(figures.receivedAfterMs).toMatchObject({ count: 2, p50: 6, max: 34 });
    expect(figures.readingMs).toMatchObject({ p50: 4, max: 4 });
    expect(figures.storedAfterMs).toMatchObject({ count: 2, p50: 8 });
  });

  test('is early by a millisecond, and not when exactly on time', () => {
    expect(latenessFigures([retry(-1), retry(0)], STARTED_AT_MS).early).toBe(1);
  });

  test('counts missing and duplicate retries', () => {
    const figures = latenessFigures([retry(null), retry(1, { count: 3 })], STARTED_AT_MS);
    expect(figures).toMatchObject({ due: 2, missing: 1, duplicates: 2, early: 0 });
  });

  test('is shown for the second in which the retry was due', () => {
    const { timeline } = latenessFigures([retry(1_500)], STARTED_AT_MS);
    expect(timeline[5]).toMatchObject({ released: 0, releasedAfterMs: { p99: 1_500 } });
    expect(timeline[6]).toMatchObject({ released: 1, received: 1, releasedAfterMs: { p99: null } });
  });

  test('has no storing time for what Kafka refused', () => {
    const figures = latenessFigures([retry(null, { storedAtMs: null })], STARTED_AT_MS);
    expect(figures.storedAfterMs.count).toBe(0);
  });
});

const TIMES = { endedAtMs: 1_000, dueAtMs: 6_000 };
const release = (atMs: number) => ({ releasedAtMs: atMs, receivedAtMs: atMs + 3 });

describe('the retry tracker', () => {
  test('keeps the first release and counts later ones', () => {
    const tracker = createRetryTracker();
    tracker.expect('msg_a', TIMES);
    tracker.note('msg_a', release(6_001));
    tracker.note('msg_a', release(7_000));
    expect(tracker.all()).toEqual([
      { ...TIMES, storedAtMs: null, release: release(6_001), count: 2 },
    ]);
  });

  test('counts retries that are not released', () => {
    const tracker = createRetryTracker();
    tracker.expect('msg_a', TIMES);
    tracker.expect('msg_b', TIMES);
    tracker.note('msg_a', release(6_000));
    tracker.note('msg_a', release(6_000));
    expect(tracker.missing()).toBe(1);
  });

  test('counts unexpected releases separately', () => {
    const tracker = createRetryTracker();
    tracker.note('msg_x', release(6_000));
    expect(tracker.unexpected()).toBe(1);
    expect(tracker.missing()).toBe(0);
  });

  test('has nothing missing once it has forgotten all', () => {
    const tracker = createRetryTracker();
    tracker.expect('msg_a', TIMES);
    tracker.forgetAll();
    expect(tracker.missing()).toBe(0);
    expect(tracker.all()).toEqual([]);
  });
});
