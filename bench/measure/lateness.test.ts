import { expect, test } from '@jest/globals';
import { createRetryTracker, latenessFigures, type Retry } from './lateness.ts';

const STARTED_AT_MS = 1_000_000;
const TIMES = { endedAtMs: STARTED_AT_MS, dueAtMs: STARTED_AT_MS + 5_000 };

/** Returns a retry that was released this many milliseconds after it was due; null for never. */
function retry(releasedAfterMs: number | null, changed: Partial<Retry> = {}): Retry {
  const releasedAtMs = TIMES.dueAtMs + (releasedAfterMs ?? 0);
  const release =
    releasedAfterMs === null ? null : { releasedAtMs, receivedAtMs: releasedAtMs + 4 };
  return { ...TIMES, storedAtMs: STARTED_AT_MS + 8, release, count: release ? 1 : 0, ...changed };
}

test('the lateness counts from the due time, with the reading time separate', () => {
  const figures = latenessFigures([retry(2), retry(30), retry(null, { storedAtMs: null })], 0);
  expect(figures.releasedAfterMs).toMatchObject({ count: 2, p50: 2, max: 30 });
  expect(figures.receivedAfterMs).toMatchObject({ count: 2, p50: 6, max: 34 });
  expect(figures.readingMs).toMatchObject({ p50: 4, max: 4 });
  expect(figures.storedAfterMs).toMatchObject({ count: 2, p50: 8 });
});

test('early, missing and duplicate retries are counted', () => {
  expect(latenessFigures([retry(-1), retry(0)], STARTED_AT_MS).early).toBe(1);
  const figures = latenessFigures([retry(null), retry(1, { count: 3 })], STARTED_AT_MS);
  expect(figures).toMatchObject({ due: 2, missing: 1, duplicates: 2, early: 0 });
});

test('the lateness is shown for the second in which the retry was due', () => {
  const { timeline } = latenessFigures([retry(1_500)], STARTED_AT_MS);
  expect(timeline[5]).toMatchObject({ released: 0, releasedAfterMs: { p99: 1_500 } });
  expect(timeline[6]).toMatchObject({ released: 1, received: 1, releasedAfterMs: { p99: null } });
});

test('the tracker keeps the first release, and counts later and unexpected ones', () => {
  const tracker = createRetryTracker();
  const release = (releasedAtMs: number) => ({ releasedAtMs, receivedAtMs: releasedAtMs + 3 });
  tracker.expect('msg_a', TIMES);
  tracker.expect('msg_b', TIMES);
  for (const [id, atMs] of [
    ['msg_a', 6_001],
    ['msg_a', 7_000],
    ['msg_x', 1],
  ] as const) {
    tracker.note(id, release(atMs));
  }
  const [first] = tracker.all();
  expect(first).toEqual({ ...TIMES, storedAtMs: null, release: release(6_001), count: 2 });
  expect([tracker.missing(), tracker.unexpected()]).toEqual([1, 1]);
  tracker.forgetAll();
  expect([tracker.missing(), tracker.all()]).toEqual([0, []]);
});
