import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createLogger } from '../../service/logger.ts';
import type { GroupPosition } from '../offsets/group-positions.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import { createStallWatch, type StallWatch } from './stall-watch.ts';

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
