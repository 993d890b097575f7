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
  const place = { topic, partition, offset, isInherited: false };
  return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
}

describe('when a parked record may go at the latest', () => {
  test('is left to its due time where that can be right', () => {
    expect(latest(parked(NOW_MS + DELAY_MS))).toBe(Infinity);
  });

  test('is left to its due time where two machines differ by less than a second', () => {
    expect(latest(parked(NOW_MS + DELAY_MS + 999))).toBe(Infinity);
  });

  test('is one delay from now where the clock was set back since it was parked', () => {
    expect(latest(parked(NOW_MS + HOUR_MS))).toBe(monotonicMs + DELAY_MS);
  });

  test('does not move when it is asked again', () => {
    const first = latest(parked(NOW_MS + HOUR_MS));
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS))).toBe(first);
  });

  test('is the same for all that lay in the partition when it was noticed', () => {
    const first = latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 9))).toBe(first);
  });

  test('is later for what was parked after that, and in another partition', () => {
    latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 10))).toBe(monotonicMs + DELAY_MS);
    expect(latest(parked(NOW_MS + HOUR_MS, 7, 1))).toBe(monotonicMs + DELAY_MS);
  });

  test('is noticed for each topic by itself, also where two have the same delay', () => {
    latest(parked(NOW_MS + HOUR_MS, 7), 10);
    monotonicMs += 3_000;
    expect(latest(parked(NOW_MS + HOUR_MS, 7, 0, 'deferred.5s'))).toBe(monotonicMs + DELAY_MS);
  });
});
