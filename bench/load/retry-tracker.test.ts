import { describe, expect, test } from '@jest/globals';
import { createRetryTracker } from './retry-tracker.ts';

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
