import { describe, expect, test } from '@jest/globals';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { dueAtOf, holdUntilDue, HORIZON_MS, postponementMs } from './hold-until-due.ts';

const DUE_MS = 1_700_000_000_000;

function parked(dueAt?: string): LogRecord {
  const headers = dueAt === undefined ? {} : { 'due-at': dueAt };
  const place = { topic: 't', partition: 0, offset: 0, isInherited: false };
  return { ...place, key: 'wh_1', value: Buffer.alloc(0), headers };
}

/** A clock that says these times in turn, and the last one ever after. */
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

describe('holding a record until it is due', () => {
  test('ends at once when it is due or overdue', async () => {
    for (const now of [DUE_MS, DUE_MS + 3_600_000]) {
      const clock = clockOf(now);
      await holdUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
      expect(clock.said).toEqual([now]);
    }
  });

  test.each([
    ['a timer fires early', [DUE_MS - 2, DUE_MS - 1, DUE_MS - 1, DUE_MS]],
    ['the clock steps back', [DUE_MS - 1, DUE_MS - 5, DUE_MS - 1, DUE_MS + 1]],
    ['the clock jumps ahead', [DUE_MS - 1, DUE_MS + 3_600_000]],
  ])('never ends early when %s', async (_what, times) => {
    const clock = clockOf(...times);
    await holdUntilDue(DUE_MS, () => Infinity, { ...clock, monotonicMs: () => 0 });
    expect(clock.said.filter((now) => now >= DUE_MS)).toEqual([times.at(-1)]);
    expect(clock.said.length).toBeGreaterThanOrEqual(times.length);
  });
});

describe('holding a record of which the clock was set back', () => {
  test('ends at the time that the monotonic clock allows, once that is known', async () => {
    const latest = [Infinity, Infinity, 5_000];
    const monotonic = [4_999.5, 5_000];
    await holdUntilDue(DUE_MS, () => latest.shift() ?? 5_000, {
      nowMs: () => DUE_MS - 1,
      monotonicMs: () => (latest.length > 0 ? 0 : (monotonic.shift() ?? 0)),
    });
    expect([latest, monotonic]).toEqual([[], []]);
  });
});

describe('the partition of a parked record', () => {
  test('rests until the record is within the horizon', () => {
    const record = parked(String(DUE_MS));
    expect(postponementMs(record, DUE_MS - 300_000)).toBe(300_000 - HORIZON_MS);
    expect(postponementMs(record, DUE_MS - HORIZON_MS)).toBe(0);
    expect(postponementMs(record, DUE_MS)).toBeLessThan(0);
  });

  test.each([undefined, '', 'soon', '-1', '1e3', '1.5', ' 1', '1'.repeat(16)])(
    'does not rest for a due time of %j, which is none',
    (dueAt) => {
      expect(dueAtOf(parked(dueAt))).toBeNull();
      expect(postponementMs(parked(dueAt), 0)).toBe(0);
    },
  );

  test('does not rest for a time of the next century: such a record is unreadable', () => {
    expect(postponementMs(parked('4102444800000'), DUE_MS)).toBe(0);
    expect(postponementMs(parked('4102444799999'), DUE_MS)).toBeGreaterThan(0);
  });
});
