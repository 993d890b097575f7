import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createLogger } from '../../service/logger.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import type { GroupPosition } from '../offsets/group-positions.ts';
import {
  createStallClock,
  createStallWatch,
  type PartitionReading,
  type StallClock,
  type StallWatch,
} from './stall-watch.ts';

describe('stall watch', () => {
  const STALL_MS = 110_000;
  const CHECK_MS = 10_000;

  let registry: Registry;
  let watch: StallWatch;
  let nowMs: number;
  let committed: number;
  let fetches: number;
  let restarts: number;
  let areStoresUp: boolean;
  let isWaiting: boolean;
  let isKafkaUp: boolean;

  beforeEach(() => {
    [nowMs, committed, fetches, restarts] = [0, 7, 0, 0];
    [areStoresUp, isWaiting, isKafkaUp] = [true, false, true];
    registry = new Registry();
    watch = createStallWatch({
      topics: ['a'],
      stallMs: STALL_MS,
      logger: createLogger('test', 'silent'),
      metrics: createKafkaMetrics(registry),
      areStoresUp: () => areStoresUp,
      readPositions: () => (isKafkaUp ? Promise.resolve(positions()) : Promise.reject(new Error())),
      consumer: () => ({
        assigned: () => [{ topic: 'a', partition: 0 }],
        isWaiting: () => isWaiting,
        fetches: () => fetches,
      }),
      replaceConsumer: () => {
        restarts += 1;
        fetches = 0;
        return Promise.resolve();
      },
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
    });
  });

  /** Partition 1 belongs to another member and does not move. */
  const positions = (): GroupPosition[] => [
    { topic: 'a', partition: 0, committed, lag: 5, endOffset: 5 },
    { topic: 'a', partition: 1, committed: 0, lag: 50, endOffset: 50 },
  ];

  /** Checks every ten seconds for so long. The fetch loop makes a round each time unless `loops` is 0. */
  async function pass(ms: number, loops = 1): Promise<void> {
    for (const endMs = nowMs + ms; nowMs < endMs;) {
      nowMs += CHECK_MS;
      fetches += loops;
      await watch.tick();
    }
  }

  const seen = () => ({ restarts, isAlive: watch.isAlive() });

  async function metric(name: string): Promise<number | undefined> {
    const { values } = (await registry.getSingleMetric(`posthorn_kafka_${name}`)?.get()) ?? {};
    return values?.[0]?.value;
  }

  describe('the stall watch', () => {
    test('replaces the consumer after 110 s and a check, and counts it', async () => {
      await pass(STALL_MS);
      expect(seen()).toEqual({ restarts: 0, isAlive: true });
      await pass(CHECK_MS);
      expect(seen()).toEqual({ restarts: 1, isAlive: true });
      expect(await metric('consumer_restarts_total')).toBe(1);
    });

    test('reports the process as not alive when the new consumer does not move the partition either', async () => {
      await pass(STALL_MS + CHECK_MS);
      await pass(STALL_MS);
      expect(seen()).toEqual({ restarts: 1, isAlive: true });
      await pass(CHECK_MS);
      expect(seen()).toEqual({ restarts: 1, isAlive: false });
    });

    test('replaces the consumer again when the new one moved the partition first', async () => {
      await pass(STALL_MS + CHECK_MS);
      committed = 8;
      await pass(STALL_MS + 2 * CHECK_MS);
      expect(seen()).toEqual({ restarts: 2, isAlive: true });
    });

    test('does not count the time of a partition whose next record is not due', async () => {
      isWaiting = true;
      await pass(3 * STALL_MS);
      expect(restarts).toBe(0);
    });

    test.each([
      ['a store is away', (isUp: boolean) => (areStoresUp = isUp)],
      ['Kafka is away', (isUp: boolean) => (isKafkaUp = isUp)],
    ])('does not count the time while %s', async (_what, turn) => {
      await pass(STALL_MS - CHECK_MS);
      turn(false);
      await pass(3 * STALL_MS);
      turn(true);
      await pass(2 * CHECK_MS);
      expect(restarts).toBe(0);
      await pass(CHECK_MS);
      expect(restarts).toBe(1);
    });

    test('does not count the time for which the process slept', async () => {
      await pass(CHECK_MS);
      nowMs += 10 * STALL_MS;
      await pass(CHECK_MS);
      expect(restarts).toBe(0);
    });

    test('replaces the consumer when the fetch loop hangs, and reports the process as not alive when it hangs again', async () => {
      isWaiting = true;
      await pass(STALL_MS);
      await pass(STALL_MS + CHECK_MS, 0);
      expect(seen()).toEqual({ restarts: 1, isAlive: true });
      await pass(STALL_MS + CHECK_MS, 0);
      expect(seen()).toEqual({ restarts: 1, isAlive: false });
    });

    test('reports lag and last progress of its own partitions as the broker sees them', async () => {
      await pass(CHECK_MS);
      const movedAtMs = nowMs;
      await pass(5 * CHECK_MS);
      expect(await metric('consumer_lag_records')).toBe(5);
      expect(await metric('consumer_last_progress_timestamp_seconds')).toBe(movedAtMs / 1_000);
      committed = 9;
      await pass(CHECK_MS);
      expect(await metric('consumer_last_progress_timestamp_seconds')).toBe(nowMs / 1_000);
    });
  });
});

describe('stall clock', () => {
  const STALL_MS = 100;

  let clock: StallClock;
  let nowMs: number;

  beforeEach(() => {
    clock = createStallClock(STALL_MS);
    nowMs = 1_000;
  });

  const at = (position: number, more: Partial<PartitionReading> = {}): PartitionReading => ({
    topic: 'a',
    partition: 0,
    position,
    lag: 5,
    isWaiting: false,
    ...more,
  });

  /** One check after so much time; returns which partitions have stalled. */
  function check(countedMs: number, ...readings: PartitionReading[]): number[] {
    nowMs += countedMs;
    return clock.add(readings, { countedMs, nowMs }).map(({ partition }) => partition);
  }

  describe('the stall clock', () => {
    test('reports a partition that does not move although it has records to read, after the whole time', () => {
      expect(check(40, at(7))).toEqual([]);
      expect(check(60, at(7))).toEqual([]);
      expect(check(39, at(7))).toEqual([]);
      expect(check(1, at(7))).toEqual([0]);
    });

    test('gives the whole time again to a partition that moved in either direction', () => {
      for (const position of [7, 8, 3]) check(90, at(position));
      expect(check(90, at(3))).toEqual([]);
      expect(check(90, at(3))).toEqual([0]);
    });

    test.each([
      ['nothing to read', { lag: 0 }],
      ['its next record not due, or no capacity', { isWaiting: true }],
    ])('does not count the time of a partition that has %s', (_why, excuse) => {
      check(0, at(7));
      check(90, at(7));
      expect(check(90, at(7, excuse))).toEqual([]);
      expect(check(90, at(7))).toEqual([]);
    });

    test('judges each partition on its own', () => {
      check(0, at(7), at(1, { partition: 1 }));
      expect(check(100, at(7), at(2, { partition: 1 }))).toEqual([0]);
    });

    test('forgets a partition that went away and came back', () => {
      check(0, at(7));
      check(90, at(7));
      check(90);
      expect(check(90, at(7))).toEqual([]);
      expect(check(90, at(7))).toEqual([]);
    });

    test('gives every partition its whole time again when the consumer was replaced', () => {
      check(0, at(7));
      check(100, at(7));
      clock.restart();
      expect(check(99, at(7))).toEqual([]);
      expect(check(1, at(7))).toEqual([0]);
    });

    test('returns when the partition of a topic that has waited longest last moved', () => {
      check(0, at(7), at(1, { partition: 1 }));
      check(30, at(7), at(2, { partition: 1 }));
      check(30, at(7), at(3, { partition: 1 }));
      expect(clock.movedAtMs('a', nowMs)).toBe(1_000);
      expect(clock.movedAtMs('b', nowMs)).toBe(nowMs);
    });
  });
});
