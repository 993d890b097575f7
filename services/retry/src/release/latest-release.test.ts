import { beforeEach, describe, expect, test } from '@jest/globals';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLatestRelease, type LatestRelease } from './latest-release.ts';

const NOW_MS = 1_700_000_000_000;
const DELAY_MS = 5_000;
const HOUR_MS = 3_600_000;

let monotonicMs = 0;
let latest: LatestRelease;

beforeEach(() => {
  monotonicMs = 1_000;
  latest = createLatestRelease({
    delayMsOf: () => DELAY_MS,
    nowMs: () => NOW_MS,
    monotonicMs: () => monotonicMs,
  });
});

function parked(dueAtMs: number, offset = 0, partition = 0, topic = 'retry.5s'): LogRecord {
  const headers = { 'due-at': String(dueAtMs) };
  const place = { topic, partition, offset, isInherited: false, ownedSinceMs: 0, timestampMs: 0 };
  return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
}

describe('the latest release of a parked record', () => {
  test('is infinite when its due time is within its delay', () => {
    expect(latest(parked(NOW_MS + DELAY_MS))).toBe(Infinity);
  });

  test('is infinite when its due time exceeds its delay by less than a second of clock skew', () => {
    expect(latest(parked(NOW_MS + DELAY_MS + 999))).toBe(Infinity);
  });

  test('is one delay from now when the clock was set back since it was parked', () => {
    expect(latest(parked(NOW_MS + HOUR_MS))).toBe(monotonicMs + DELAY_MS);
  });

  test('does not change when it is computed again', () => {
    const first = latest(parked(NOW_MS + HOUR_MS));
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS))).toBe(first);
  });

  test('is the same for every record that was in the partition then', () => {
    const first = latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 9))).toBe(first);
  });

  test('is later for records that were parked after that, and in another partition', () => {
    latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 10))).toBe(monotonicMs + DELAY_MS);
    expect(latest(parked(NOW_MS + HOUR_MS, 7, 1))).toBe(monotonicMs + DELAY_MS);
  });

  test('is separate for each topic, also when two have the same delay', () => {
    latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 7, 0, 'deferred.5s'))).toBe(monotonicMs + DELAY_MS);
  });
});
