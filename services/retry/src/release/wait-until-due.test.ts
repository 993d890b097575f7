import { describe, expect, test } from '@jest/globals';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { HORIZON_MS, pauseMsFor, waitUntilDue } from './wait-until-due.ts';

const DUE_MS = 1_700_000_000_000;

function parked(dueAt?: string): LogRecord {
  const headers = dueAt === undefined ? {} : { 'due-at': dueAt };
  const place = {
    topic: 't',
    partition: 0,
    offset: 0,
    isInherited: false,
    ownedSinceMs: 0,
    timestampMs: 0,
  };
  return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
}

/** A clock that shows these times in turn, and then always the last one. */
function clockOf(...times: number[]) {
  const said: number[] = [];
  return {
    said,
    nowMs: () => {
      const now = times[Math.min(said.length, times.length - 1)] ?? 0;
      said.push(now);
      return now;
    },
  };
}

describe('waiting until a record is due', () => {
  test('ends at once when it is due or overdue', async () => {
    for (const now of [DUE_MS, DUE_MS + 3_600_000]) {
      const clock = clockOf(now);
      await waitUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
      expect(clock.said).toEqual([now]);
    }
  });

  test.each([
    ['a timer fires early', [DUE_MS - 2, DUE_MS - 1, DUE_MS - 1, DUE_MS]],
    ['the clock steps back', [DUE_MS - 1, DUE_MS - 5, DUE_MS - 1, DUE_MS + 1]],
    ['the clock jumps ahead', [DUE_MS - 1, DUE_MS + 3_600_000]],
  ])('never ends early when %s', async (_what, times) => {
    const clock = clockOf(...times);
    await waitUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
    expect(clock.said.filter((now) => now >= DUE_MS)).toEqual([times.at(-1)]);
    expect(clock.said.length).toBeGreaterThanOrEqual(times.length);
  });
});

describe('waiting when the clock was set back', () => {
  test('ends at the latest release by the monotonic clock, once that is finite', async () => {
    const latest = [Infinity, Infinity, 5_000];
    const monotonic = [4_999.5, 5_000];
    await waitUntilDue(DUE_MS, () => latest.shift() ?? 5_000, {
      nowMs: () => DUE_MS - 1,
      monotonicMs: () => (latest.length > 0 ? 0 : (monotonic.shift() ?? 0)),
    });
    expect([latest, monotonic]).toEqual([[], []]);
  });
});

describe('the partition of a parked record', () => {
  test('is paused until the record is due within the horizon', () => {
    const record = parked(String(DUE_MS));
    expect(pauseMsFor(record, DUE_MS - 300_000)).toBe(300_000 - HORIZON_MS);
    expect(pauseMsFor(record, DUE_MS - HORIZON_MS)).toBe(0);
    expect(pauseMsFor(record, DUE_MS)).toBeLessThan(0);
  });

  test.each([undefined, '', 'soon', '-1', '1e3', '1.5', ' 1', '1'.repeat(16)])(
    'is not paused for a due time of %j, which is unreadable',
    (dueAt) => {
      expect(pauseMsFor(parked(dueAt), 0)).toBe(0);
    },
  );

  test('is not paused for a time after 2099: such a record becomes a dead letter', () => {
    expect(pauseMsFor(parked('4102444800000'), DUE_MS)).toBe(0);
    expect(pauseMsFor(parked('4102444799999'), DUE_MS)).toBeGreaterThan(0);
  });
});
