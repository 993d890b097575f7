import { describe, expect, test } from '@jest/globals';
import { describeFailure, loadSimulation } from './load-simulation.ts';
import type { SimulationResult } from './simulate.ts';
import { ORDERED_FROM, REPLAYED_FROM } from './world/plan.ts';
import { PROMISED_DELAYS_MS } from './invariants/check-records.ts';

/** `npm test` runs a thousand more in a process of their own. */
const SEEDS = 50;
const ORDERED_SEEDS = 20;
const REPLAYED_SEEDS = 10;
const { simulate } = await loadSimulation();

/** Returns an empty string if every invariant held, else a report with the command that repeats the run. */
function failureOf(result: SimulationResult): string {
  return result.violations.length === 0 ? '' : describeFailure(result);
}

describe('a simulated system', () => {
  test(`keeps every invariant in ${SEEDS} runs with crashes, delays, duplicates and reordering`, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      expect(failureOf(await simulate(seed))).toBe('');
    }
  });

  test(`keeps the order of ordering keys in ${ORDERED_SEEDS} such runs, and nothing waits for ever`, async () => {
    for (let seed = ORDERED_FROM; seed < ORDERED_FROM + ORDERED_SEEDS; seed += 1) {
      expect(failureOf(await simulate(seed))).toBe('');
    }
  });

  test(`keeps the order of what is replayed and of what comes behind it in ${REPLAYED_SEEDS} such runs`, async () => {
    for (let seed = REPLAYED_FROM; seed < REPLAYED_FROM + REPLAYED_SEEDS; seed += 1) {
      expect(failureOf(await simulate(seed))).toBe('');
    }
  });

  test('makes seven attempts at the promised times and then exhausts the delivery, if only the endpoint fails', async () => {
    expect(PROMISED_DELAYS_MS).toEqual([
      5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000,
    ]);
    for (let seed = 1; seed <= 10; seed += 1) {
      const result = await simulate(seed, { isFaultFree: true });
      expect(failureOf(result)).toBe('');
      for (const waits of waitsOf(result)) expect(waits).toEqual(PROMISED_DELAYS_MS);
      const deliveries = [...result.mongo.collection('deliveries').values()];
      expect(deliveries.map(({ status }) => status)).toEqual(deliveries.map(() => 'exhausted'));
    }
  });

  test('produces the same trace twice from the same seed', async () => {
    const [first, second] = [
      await simulate(7, { isTraced: true }),
      await simulate(7, { isTraced: true }),
    ];
    expect(second.trace).toEqual(first.trace);
    expect(first.trace.length).toBeGreaterThan(10);
  });
});

/** Returns the times between the end of an attempt and the start of the next one, in ms rounded down to seconds. */
function waitsOf({ observations }: SimulationResult): number[][] {
  const all = [...observations.requests.values()].flat();
  const byDelivery = Map.groupBy(all, ({ deliveryId }) => deliveryId);
  return [...byDelivery.values()].map((requests) =>
    requests.slice(1).map(({ virtualStartMs }, index) => {
      const { virtualStartMs: previousMs = 0, durationMs = 0 } = requests[index] ?? {};
      return Math.floor((virtualStartMs - previousMs - durationMs) / 1_000) * 1_000;
    }),
  );
}
