import { beforeEach, describe, expect, test } from '@jest/globals';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import { createDatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { DayClock } from '@posthorn/platform/mongo/days/daily-collection.ts';
import type { DayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import { DAY_KINDS, type DayKind } from '@posthorn/platform/mongo/days/days.ts';
import type { StoredLayout } from '@posthorn/platform/mongo/days/layout.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../test/support/memory/memory-leases.ts';
import { createDayMetrics, createKeepDays, daySteps, daysToDrop } from './keep-days.ts';

describe('keep days', () => {
  const TODAY = 100;
  const DAYS = [100, 101, 102, 103];
  const BEGUN = { beginMs: 0, retentionMs: 2 * DAY_MS, isSharded: false };

  /** The collections by kind, in memory, and what was done with them. */
  function createMemoryDays(layout: StoredLayout | null) {
    const found = new Map<DayKind, Set<number>>(DAY_KINDS.map((kind) => [kind, new Set()]));
    const daysOf = (kind: DayKind): Set<number> => found.get(kind) ?? new Set();
    const created: string[] = [];
    /** What MongoDB refuses, such as `drop messages 96`. */
    const refused = new Set<string>();
    const asked = (what: string): Promise<void> =>
      refused.has(what) ? Promise.reject(new Error(what)) : Promise.resolve();
    const days: DayCollections = {
      readLayout: () => Promise.resolve(layout),
      async list(kind) {
        await asked(`list ${kind}`);
        return [...daysOf(kind)].sort((a, b) => a - b);
      },
      async create(kind, day) {
        await asked(`create ${kind} ${day}`);
        created.push(`${kind} ${day}`);
        daysOf(kind).add(day);
      },
      async drop(kind, day) {
        await asked(`drop ${kind} ${day}`);
        daysOf(kind).delete(day);
      },
    };
    return { days, daysOf, created, refused };
  }

  const inSeconds = (days: number): number => (days * DAY_MS) / 1_000;

  let clocks: { database: number; own: number };
  let leases: MemoryLeases;

  beforeEach(() => {
    const noon = (TODAY + 0.5) * DAY_MS;
    clocks = { database: noon, own: noon };
    leases = createMemoryLeases();
  });

  const bothClocks: DayClock = {
    nowMs: () => clocks.database,
    earlierMs: () => Math.min(clocks.database, clocks.own),
  };

  function open(layout: StoredLayout | null = BEGUN, clock = bothClocks) {
    const memory = createMemoryDays(layout);
    const registry = new Registry();
    const keep = createKeepDays({
      holder: 'retry-1',
      leases,
      days: memory.days,
      metrics: createDayMetrics(registry, clock),
      ...clock,
      logger: createLogger('test', 'silent'),
    });
    const metric = async (name: string): Promise<(number | undefined)[]> => {
      const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {};
      return values.map(({ value }) => value);
    };
    return { ...memory, keep, metric };
  }

  describe('the collections of days', () => {
    test('exist for today and three days ahead, and are made once', async () => {
      const { keep, daysOf, created, metric } = open();
      await keep.tick();
      await keep.tick();
      for (const kind of DAY_KINDS) expect([...daysOf(kind)]).toEqual([100, 101, 102, 103]);
      expect(created).toHaveLength(12);
      expect(await metric('posthorn_days_ahead')).toEqual([3, 3, 3]);
      clocks.database += DAY_MS;
      expect(await metric('posthorn_days_ahead')).toEqual([2, 2, 2]);
    });

    test('are made before others are completed and dropped', async () => {
      const { keep, daysOf, created } = open();
      for (const day of [97, 99]) daysOf('messages').add(day);
      await keep.tick();
      expect(created.slice(0, 4)).toEqual(DAYS.map((day) => `messages ${day}`));
      expect(created.at(-1)).toBe('messages 99');
    });

    test.each([
      ['be dropped', 'drop messages 96'],
      ['be completed', 'create messages 99'],
      ['be made', 'create deliveries 100'],
      ['be listed', 'list messages'],
    ])('do not depend on one that cannot %s', async (_what, refusal) => {
      const { keep, daysOf, refused } = open();
      for (const day of [95, 96, 99]) daysOf('messages').add(day);
      refused.add(refusal);
      await keep.tick();
      expect([...daysOf('messages')]).toEqual(expect.arrayContaining(DAYS));
      expect([...daysOf('deliveries')]).toEqual(expect.arrayContaining(DAYS.slice(1)));
      refused.clear();
      await keep.tick();
      expect([...daysOf('messages')].sort()).toEqual([...DAYS, 99]);
      expect([...daysOf('deliveries')].sort()).toEqual(DAYS);
    });

    test('are completed when a write has made them', async () => {
      const { keep, daysOf, created } = open();
      daysOf('messages').add(99);
      await keep.tick();
      expect(created).toContain('messages 99');
    });

    test('are dropped when everything in them has expired', async () => {
      const { keep, daysOf, metric } = open();
      for (const day of [96, 97, 98]) daysOf('deliveries').add(day);
      await keep.tick();
      expect(Math.min(...daysOf('deliveries'))).toBe(98);
      expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual([0, 0, 0]);
      clocks.database += 2 * DAY_MS;
      clocks.own += 2 * DAY_MS;
      expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual([0, 1.5 * 86_400, 0]);
    });

    test.each(['database', 'own'] as const)(
      'are kept when only one clock takes them for expired: %s',
      async (clock) => {
        const { keep, daysOf } = open();
        daysOf('messages').add(99);
        clocks[clock] += 9 * DAY_MS;
        await keep.tick();
        expect(daysOf('messages')).toContain(99);
      },
    );

    /** Everything of day 97 has expired. */
    const EXPIRED_MS = 100 * DAY_MS;
    const HOUR_MS = 3_600_000;

    test.each([
      ['an hour ahead', HOUR_MS, EXPIRED_MS],
      ['an hour behind', -HOUR_MS, EXPIRED_MS + HOUR_MS],
    ])(
      'are dropped when both clocks say so: a process that is %s',
      async (_, aheadMs, droppedAtMs) => {
        let databaseMs = droppedAtMs - 1;
        const clock = createDatabaseTime({
          databaseMs: () => Promise.resolve(databaseMs),
          systemMs: () => databaseMs + aheadMs,
          monotonicMs: () => databaseMs,
        });
        await clock.look();
        const { keep, daysOf, metric } = open(BEGUN, clock);
        daysOf('messages').add(97);
        await keep.tick();
        expect(daysOf('messages')).toContain(97);
        expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual([0, 0, 0]);
        databaseMs += 1;
        await keep.tick();
        expect(daysOf('messages')).not.toContain(97);
      },
    );

    test('are left alone while no layout is stored', async () => {
      const { keep, daysOf, metric } = open(null);
      daysOf('messages').add(1);
      await keep.tick();
      expect([...daysOf('messages')]).toEqual([1]);
      expect(await metric('posthorn_days_ahead')).toEqual([]);
      expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual([]);
    });

    test('are shown from the first look on, also when nothing can be made or dropped', async () => {
      const { keep, daysOf, refused, metric } = open();
      for (const kind of DAY_KINDS) {
        // A clock that is far ahead has made the later one.
        for (const day of [95, 109]) daysOf(kind).add(day);
        for (const day of DAYS) refused.add(`create ${kind} ${day}`);
        refused.add(`drop ${kind} 95`);
      }
      await keep.tick();
      expect(await metric('posthorn_days_ahead')).toEqual([0, 0, 0]);
      expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual(
        [2.5, 2.5, 2.5].map(inSeconds),
      );
      refused.add('list deliveries');
      await keep.tick();
      expect(await metric('posthorn_days_ahead')).toEqual([0, 0, 0]);
      expect(await metric('posthorn_day_drop_overdue_seconds')).toEqual([2.5, 2.5].map(inSeconds));
    });

    test('are kept by one process at a time', async () => {
      await leases.hold('keep-days', 'retry-2');
      const { keep, created, daysOf, metric } = open();
      daysOf('messages').add(101);
      await keep.tick();
      expect(created).toEqual([]);
      expect(await metric('posthorn_days_ahead')).toEqual([1, 0, 0]);
      await leases.release('keep-days', 'retry-2');
      await keep.tick();
      expect(created).not.toEqual([]);
      await keep.stop();
      expect(leases.holders.size).toBe(0);
    });
  });
});

const NOON = 100.5 * DAY_MS;
const layout = { beginMs: 0, retentionMs: 2 * DAY_MS };

test('the days that are needed come first, then what other days lack, and drops are the last', () => {
  const found = { messages: [97, 99, 100], deliveries: [98], idempotencyKeys: [96, 97, 98] };
  const times = { nowMs: NOON, earlierMs: NOON };
  const steps = daySteps(found, layout, times).map(({ what, kind, day }) => [what, kind, day]);
  const needed = (kind: string) => [100, 101, 102, 103].map((day) => ['complete', kind, day]);
  expect(steps).toEqual([
    ...needed('messages'),
    ...needed('deliveries'),
    ...needed('idempotencyKeys'),
    ['complete', 'messages', 99],
    ['complete', 'deliveries', 98],
    ['complete', 'idempotencyKeys', 98],
    ['drop', 'messages', 97],
    ['drop', 'idempotencyKeys', 96],
    ['drop', 'idempotencyKeys', 97],
  ]);
});

test('a day is dropped when its last millisecond has expired', () => {
  const days = [95, 96, 97, 98, 103];
  expect(daysToDrop(days, layout, NOON)).toEqual([95, 96, 97]);
  expect(daysToDrop([98], layout, 101 * DAY_MS - 1)).toEqual([]);
  expect(daysToDrop([98], layout, 101 * DAY_MS)).toEqual([98]);
  expect(() => daysToDrop(days, { ...layout, retentionMs: NaN }, NOON)).toThrow('NaN');
});
