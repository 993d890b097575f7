import { describe, expect, test } from '@jest/globals';
import {
  CLOCK_AHEAD_HEADER,
  DEFERRED_SINCE_HEADER,
  DUE_AT_HEADER,
} from '@posthorn/domain/records/record-headers.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { sampleDue, sampleRecord } from '../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { chooseDelayMs, createDefer, reservedAtOf } from './defer.ts';
import type { Reason } from './isolation/gate.ts';

const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

const reservedIn = (text: string) => reservedAtOf(sampleRecord({ 'turn-at': text }), NOW_MS);

describe('the reservation of a deferred record', () => {
  test('is the time in its header', () => {
    expect(reservedIn(String(NOW_MS + DAY_MS))).toBe(NOW_MS + DAY_MS);
  });

  test.each([
    ['later than any reservation that is booked', String(NOW_MS + 367 * DAY_MS)],
    ['no time', 'soon'],
    ['a negative one', '-1'],
  ])('is ignored when it is %s', (_what, text) => {
    expect(reservedIn(text)).toBeNull();
  });
});

describe('the delay of a deferral', () => {
  const LADDER_MS = [1_000, 5_000, 15_000, 60_000, 300_000];

  test.each([
    [200, 1_000],
    [1_000, 1_000],
    [14_999, 5_000],
    [59_000, 15_000],
    [9_000_000, 300_000],
  ])('for a reservation in %i ms is the longest that ends before it, %i ms', (waitMs, delayMs) => {
    expect(chooseDelayMs(LADDER_MS, waitMs, 'pace')).toBe(delayMs);
  });

  test.each([
    [200, 1_000],
    [5_000, 5_000],
    [30_000, 60_000],
    [9_000_000, 300_000],
  ])('for an open circuit of %i ms is the shortest that covers it, %i ms', (waitMs, delayMs) => {
    expect(chooseDelayMs(LADDER_MS, waitMs, 'circuit')).toBe(delayMs);
  });
});

describe('deferring an attempt', () => {
  async function defer(
    headers: Record<string, string>,
    because: Reason = 'pace',
    changed: Partial<LogRecord> = {},
  ): Promise<OutgoingRecord | undefined> {
    const published: OutgoingRecord[] = [];
    const deferAttempt = createDefer({
      keepTrying,
      records: {
        publish: (records) => {
          published.push(...records);
          return Promise.resolve();
        },
      },
      deferredByDelayMs: new Map([[300_000, 'deferred.5m']]),
      count: () => undefined,
      nowMs: () => NOW_MS,
    });
    await deferAttempt(sampleRecord(headers, changed), sampleDue(), {
      because,
      reservedAtMs: NOW_MS + 300_000,
    });
    return published[0];
  }

  const dueAfter = async (headers: Record<string, string>): Promise<number> =>
    Number((await defer(headers))?.headers?.[DUE_AT_HEADER]) - NOW_MS;

  test('makes it due when its delay is over', async () => {
    expect(await dueAfter({ [DUE_AT_HEADER]: String(NOW_MS - 10) })).toBe(300_000);
  });

  test('adds twice the time by which it came too early, because the clock that released it is ahead', async () => {
    expect(await dueAfter({ [DUE_AT_HEADER]: String(NOW_MS + 70_000) })).toBe(440_000);
  });

  test('adds the time by which it came too early once that is no more than was added before', async () => {
    const headers = { [DUE_AT_HEADER]: String(NOW_MS + 70_000), [CLOCK_AHEAD_HEADER]: '140000' };
    expect(await dueAfter(headers)).toBe(370_000);
  });

  test('gives it its reservation', async () => {
    const deferred = await defer({ [DUE_AT_HEADER]: String(NOW_MS + 70_000) }, 'pace');
    expect(deferred?.headers?.['turn-at']).toBe(String(NOW_MS + 300_000));
  });

  test('makes a small record of one that is just under the limit of a broker', async () => {
    const large = 'x'.repeat(500_000);
    const deferred = await defer({ other: large, requestId: 'req_1' }, 'circuit', {
      key: large,
      value: Buffer.from(large),
    });
    expect(JSON.stringify({ ...deferred, value: deferred?.value.toString() }).length).toBeLessThan(
      1_000,
    );
    expect(deferred?.headers).toMatchObject({ requestId: 'req_1' });
  });

  test('records since when open circuits have deferred it, and keeps that time', async () => {
    const first = await defer({}, 'circuit');
    expect(first?.headers?.[DEFERRED_SINCE_HEADER]).toBe(String(NOW_MS));
    const later = await defer({ [DEFERRED_SINCE_HEADER]: '1600000000000' }, 'circuit');
    expect(later?.headers?.[DEFERRED_SINCE_HEADER]).toBe('1600000000000');
    expect((await defer({}))?.headers).not.toHaveProperty(DEFERRED_SINCE_HEADER);
  });
});
