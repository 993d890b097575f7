import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createLogger } from '../../service/logger.ts';
import type { Position } from '../positions/ask-positions.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import { watchForStalls, type StallWatch } from './watch-for-stalls.ts';

const STALL_MS = 120_000;
const LOOK_MS = 10_000;

let registry: Registry;
let watch: StallWatch;
let nowMs: number;
let committed: number;
let fetches: number;
let restarts: number;
let isJudgeable: boolean;
let isWaiting: boolean;
let isKafkaUp: boolean;

beforeEach(() => {
  [nowMs, committed, fetches, restarts] = [0, 7, 0, 0];
  [isJudgeable, isWaiting, isKafkaUp] = [true, false, true];
  registry = new Registry();
  watch = watchForStalls({
    topics: ['a'],
    stallMs: STALL_MS,
    logger: createLogger('test', 'silent'),
    metrics: createKafkaMetrics(registry),
    isJudgeable: () => isJudgeable,
    askPositions: () => (isKafkaUp ? Promise.resolve(positions()) : Promise.reject(new Error())),
    reader: () => ({
      assigned: () => [{ topic: 'a', partition: 0 }],
      isWaiting: () => isWaiting,
      fetches: () => fetches,
    }),
    restart: () => {
      restarts += 1;
      fetches = 0;
      return Promise.resolve();
    },
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
  });
});

/** Partition 1 is another member's, and stands still. */
const positions = (): Position[] => [
  { topic: 'a', partition: 0, committed, lag: 5 },
  { topic: 'a', partition: 1, committed: 0, lag: 50 },
];

/** Looks every ten seconds for so long; the fetch loop goes round unless told. */
async function pass(ms: number, loops = 1): Promise<void> {
  for (const endMs = nowMs + ms; nowMs < endMs;) {
    nowMs += LOOK_MS;
    fetches += loops;
    await watch.tick();
  }
}

const seen = () => ({ restarts, isAlive: watch.isAlive() });

async function metric(name: string): Promise<number | undefined> {
  const { values } = (await registry.getSingleMetric(`posthorn_kafka_${name}`)?.get()) ?? {};
  return values?.[0]?.value;
}

describe('the watch for stalls', () => {
  test('begins anew after two minutes and a look, and counts it', async () => {
    await pass(STALL_MS);
    expect(seen()).toEqual({ restarts: 0, isAlive: true });
    await pass(LOOK_MS);
    expect(seen()).toEqual({ restarts: 1, isAlive: true });
    expect(await metric('consumer_restarts_total')).toBe(1);
  });

  test('calls for a restart of the process when the new consumer does not move it either', async () => {
    await pass(STALL_MS + LOOK_MS);
    await pass(STALL_MS);
    expect(seen()).toEqual({ restarts: 1, isAlive: true });
    await pass(LOOK_MS);
    expect(seen()).toEqual({ restarts: 1, isAlive: false });
  });

  test('begins anew again when the new consumer moved it first', async () => {
    await pass(STALL_MS + LOOK_MS);
    committed = 8;
    await pass(STALL_MS + 2 * LOOK_MS);
    expect(seen()).toEqual({ restarts: 2, isAlive: true });
  });

  test('does not mind a head that is not due', async () => {
    isWaiting = true;
    await pass(3 * STALL_MS);
    expect(restarts).toBe(0);
  });

  test.each([
    ['a store is away', (isUp: boolean) => (isJudgeable = isUp)],
    ['Kafka is away', (isUp: boolean) => (isKafkaUp = isUp)],
  ])('does not count the time while %s', async (_what, turn) => {
    await pass(STALL_MS - LOOK_MS);
    turn(false);
    await pass(3 * STALL_MS);
    turn(true);
    await pass(2 * LOOK_MS);
    expect(restarts).toBe(0);
    await pass(LOOK_MS);
    expect(restarts).toBe(1);
  });

  test('does not count the time for which the process slept', async () => {
    await pass(LOOK_MS);
    nowMs += 10 * STALL_MS;
    await pass(LOOK_MS);
    expect(restarts).toBe(0);
  });

  test('begins anew when the fetch loop hangs, and calls for a restart when it hangs again', async () => {
    isWaiting = true;
    await pass(STALL_MS);
    await pass(STALL_MS + LOOK_MS, 0);
    expect(seen()).toEqual({ restarts: 1, isAlive: true });
    await pass(STALL_MS + LOOK_MS, 0);
    expect(seen()).toEqual({ restarts: 1, isAlive: false });
  });

  test('tells lag and last progress of what is ours by the broker', async () => {
    await pass(LOOK_MS);
    const movedAtMs = nowMs;
    await pass(5 * LOOK_MS);
    expect(await metric('consumer_lag_records')).toBe(5);
    expect(await metric('consumer_last_progress_timestamp_seconds')).toBe(movedAtMs / 1_000);
    committed = 9;
    await pass(LOOK_MS);
    expect(await metric('consumer_last_progress_timestamp_seconds')).toBe(nowMs / 1_000);
  });
});
