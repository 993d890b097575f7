import { describe, expect, test } from '@jest/globals';
import { DAY_MS, firstIdAt } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { createDatabaseTime } from '../database-time.ts';
import { createDailyCollection, type DayClock, type DayLayout } from './daily-collection.ts';

interface Named {
  _id: string;
}

const NOON = Date.UTC(2026, 10, 24, 12);
const HOUR_MS = 3_600_000;
const idAt = (ms: number): string => `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;
const named = (collectionName: string): mongo.Collection<Named> =>
  ({ collectionName }) as mongo.Collection<Named>;

const AT_NOON: DayClock = { nowMs: () => NOON, earlierMs: () => NOON };

function openDays(layout: DayLayout, clock = AT_NOON) {
  const days = { collection: named } as unknown as mongo.Db;
  return createDailyCollection<Named>({ days, layout: () => layout, ...clock });
}

/** Of a process whose clock is ahead of that of the database. */
async function clockAt(databaseMs: number, aheadMs: number): Promise<DayClock> {
  const time = createDatabaseTime({
    databaseMs: () => Promise.resolve(databaseMs),
    systemMs: () => databaseMs + aheadMs,
    monotonicMs: () => 0,
  });
  await time.look();
  return time;
}

const namesOf = (found: readonly mongo.Collection<Named>[]): string[] =>
  found.map(({ collectionName }) => collectionName);
const kept = (days: number): DayLayout => ({ beginMs: 0, retentionMs: days * DAY_MS });

describe('the day of an id', () => {
  test('is that of its time', () => {
    const { of } = openDays(kept(30));
    const ids = [NOON - DAY_MS / 2 - 1, NOON - DAY_MS / 2, NOON].map(idAt);
    expect(namesOf(ids.map(of))).toEqual(['2026-11-23', '2026-11-24', '2026-11-24']);
  });

  test('divides a batch, with the oldest day first and the order of each day as it was', () => {
    const { group } = openDays(kept(1));
    const times = [NOON + DAY_MS, NOON + 1, NOON - DAY_MS, NOON + 2];
    const groups = group(times, idAt).map(({ documents, items }) => [
      documents.collectionName,
      items,
    ]);
    expect(groups).toEqual([
      ['2026-11-23', [NOON - DAY_MS]],
      ['2026-11-24', [NOON + 1, NOON + 2]],
      ['2026-11-25', [NOON + DAY_MS]],
    ]);
    expect(group([], idAt)).toEqual([]);
  });
});

describe('the days of a span', () => {
  test('are those that are kept, and the next one for clocks that are ahead', () => {
    expect(namesOf(openDays(kept(2)).within({}))).toEqual([
      ...['2026-11-22', '2026-11-23', '2026-11-24', '2026-11-25'],
    ]);
  });

  test('are between its bounds, as far as they are kept', () => {
    const { within } = openDays(kept(2));
    const span = { fromId: idAt(NOON - DAY_MS), beforeId: idAt(NOON) };
    expect(namesOf(within(span))).toEqual(['2026-11-23', '2026-11-24']);
    const wide = { fromId: idAt(0), beforeId: idAt(NOON - DAY_MS) };
    expect(namesOf(within(wide))).toEqual(['2026-11-22', '2026-11-23']);
    expect(within({ fromId: idAt(NOON + DAY_MS), beforeId: idAt(NOON) })).toEqual([]);
  });

  test('go on from an id that a clock made which is days ahead', () => {
    const { within } = openDays(kept(2));
    const fromId = idAt(NOON + 9 * DAY_MS);
    expect(namesOf(within({ fromId }))).toEqual(['2026-12-03', '2026-12-04']);
    expect(namesOf(within({ fromId, beforeId: '~' }))).toEqual(['2026-12-03', '2026-12-04']);
  });

  test('are none from before the first day', () => {
    const { within } = openDays({ beginMs: NOON, retentionMs: 9 * DAY_MS });
    expect(namesOf(within({}))).toEqual(['2026-11-24', '2026-11-25']);
  });
});

describe('a process whose clock is wrong by an hour', () => {
  test.each([HOUR_MS, -HOUR_MS])(
    'keeps documents by the time of the database: it is ahead by %i ms',
    async (aheadMs) => {
      const {
        isKept,
        notRemoved,
        kept: keptSpan,
      } = openDays(kept(2), await clockAt(NOON, aheadMs));
      const oldestMs = NOON - 2 * DAY_MS;
      expect([oldestMs - 1, oldestMs].map((ms) => isKept(idAt(ms)))).toEqual([false, true]);
      expect([NOON, NOON + 1].map((ms) => isKept(idAt(NOON), new Date(ms)))).toEqual([false, true]);
      expect(notRemoved()).toEqual({ removeAt: { $not: { $lte: new Date(NOON) } } });
      expect(keptSpan({}, 'msg').fromId).toBe(firstIdAt('msg', oldestMs));
    },
  );

  const MIDNIGHT = NOON + DAY_MS / 2;
  test.each([
    // It does not take the day for dropped before the database does.
    ['ahead', HOUR_MS, MIDNIGHT - 1, '2026-11-22'],
    ['ahead', HOUR_MS, MIDNIGHT, '2026-11-23'],
    // It has not dropped the day yet.
    ['behind', -HOUR_MS, MIDNIGHT + HOUR_MS - 1, '2026-11-22'],
    ['behind', -HOUR_MS, MIDNIGHT + HOUR_MS, '2026-11-23'],
  ])(
    'reads a day until both clocks say that it is dropped: %s by %i ms, at %i',
    async (_, aheadMs, databaseMs, oldest) => {
      const { within } = openDays(kept(2), await clockAt(databaseMs, aheadMs));
      expect(namesOf(within({}))[0]).toBe(oldest);
    },
  );
});

describe('a document', () => {
  test('is kept until its retention is over, although its day is dropped later', () => {
    const { isKept } = openDays(kept(2));
    expect([NOON - 2 * DAY_MS - 1, NOON - 2 * DAY_MS].map(idAt).map((id) => isKept(id))).toEqual([
      false,
      true,
    ]);
  });

  test('is kept until its own end when that is earlier', () => {
    const { isKept } = openDays(kept(2));
    const ends = [NOON, NOON + 1].map((ms) => new Date(ms));
    expect(ends.map((end) => isKept(idAt(NOON - 1), end))).toEqual([false, true]);
    expect(isKept(idAt(NOON - 3 * DAY_MS), new Date(NOON + 1))).toBe(false);
  });

  test('is left out of a span when it has expired', () => {
    const { kept: keptSpan } = openDays(kept(2));
    const oldest = firstIdAt('msg', NOON - 2 * DAY_MS);
    const later = idAt(NOON);
    expect(keptSpan({}, 'msg')).toEqual({ fromId: oldest, beforeId: undefined });
    const oldestDelivery = firstIdAt('dlv', NOON - 2 * DAY_MS);
    expect(keptSpan({}, 'dlv')).toEqual({ fromId: oldestDelivery, beforeId: undefined });
    expect(keptSpan({ fromId: idAt(0), beforeId: later }, 'msg')).toEqual({
      fromId: oldest,
      beforeId: later,
    });
    expect(keptSpan({ fromId: later }, 'msg')).toEqual({ fromId: later, beforeId: undefined });
  });
});
