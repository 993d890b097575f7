import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createLogger } from '../../service/logger.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import type { GroupPosition } from '../offsets/group-positions.ts';
import { StallWatch } from './stall-watch.ts';

describe('stall watch', () => {
  const STALL_MS = 110_000;
  const CHECK_MS = 10_000;

  let registry: Registry;
  let watch: StallWatch;
  let nowMs: number;
  /** The partitions of the consumer, their commits, and how many records follow. */
  let own: number[];
  let committed: number[];
  let lag: number;
  let fetches: number;
  let restarts: number;
  let areStoresUp: boolean;
  let isWaiting: boolean;
  let isKafkaUp: boolean;

  beforeEach(() => {
    [nowMs, fetches, restarts] = [0, 0, 0];
    [own, committed, lag] = [[0], [7, 0, 3], 5];
    [areStoresUp, isWaiting, isKafkaUp] = [true, false, true];
    registry = new Registry();
    watch = new StallWatch({
      topics: ['a'],
      stallMs: STALL_MS,
      logger: createLogger('test', 'silent'),
      metrics: createKafkaMetrics(registry, Date.now),
      areStoresUp: () => areStoresUp,
      readPositions: () => (isKafkaUp ? Promise.resolve(positions()) : Promise.reject(new Error())),
      consumer: () => ({
        assigned: () => own.map((partition) => ({ topic: 'a', partition })),
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
    { topic: 'a', partition: 0, committed: committed[0] ?? -1, lag, endOffset: 50 },
    { topic: 'a', partition: 1, committed: 0, lag: 50, endOffset: 50 },
    { topic: 'a', partition: 2, committed: committed[2] ?? -1, lag: 5, endOffset: 50 },
  ];

  /** Checks every ten seconds for so long. The fetch loop makes an iteration each time unless `loops` is 0. */
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
      committed[0] = 8;
      await pass(STALL_MS + 2 * CHECK_MS);
      expect(seen()).toEqual({ restarts: 2, isAlive: true });
    });

    test.each([
      ['whose next record is not due', () => (isWaiting = true)],
      ['with nothing to read', () => (lag = 0)],
    ])('does not count the time of a partition %s', async (_which, excuse) => {
      excuse();
      await pass(3 * STALL_MS);
      expect(restarts).toBe(0);
    });

    test('counts the whole time again for a partition that moved in either direction', async () => {
      for (const position of [7, 8, 3]) {
        committed[0] = position;
        await pass(STALL_MS - CHECK_MS);
      }
      await pass(CHECK_MS);
      expect(restarts).toBe(0);
      await pass(CHECK_MS);
      expect(restarts).toBe(1);
    });

    test('counts the time of each partition on its own', async () => {
      own = [0, 2];
      for (let n = 0; n < 12; n += 1) {
        committed[2] = n;
        await pass(CHECK_MS);
      }
      expect(restarts).toBe(1);
    });

    test('counts the whole time again for a partition that went away and came back', async () => {
      await pass(STALL_MS);
      own = [];
      await pass(CHECK_MS);
      own = [0];
      await pass(STALL_MS);
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

    test('does not count the time for which the process was frozen', async () => {
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
      committed[0] = 9;
      await pass(CHECK_MS);
      expect(await metric('consumer_last_progress_timestamp_seconds')).toBe(nowMs / 1_000);
    });
  });
});
