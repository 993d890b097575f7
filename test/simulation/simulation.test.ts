import { describe, expect, test } from '@jest/globals';
import { describeFailure } from './describe-run.ts';
import { loadSimulation } from './load-simulation.ts';
import type { SimulationResult } from './simulate.ts';
import { PROMISED_DELAYS_MS } from './judge/watch-records.ts';

const SEEDS = 1_000;
const { simulate } = await loadSimulation();

/** Empty when every invariant held; what to read and to repeat when not. */
function failureOf(result: SimulationResult): string {
  return result.violations.length === 0 ? '' : describeFailure(result);
}

describe('the path of a delivery', () => {
  test(`keeps its promise in ${SEEDS} simulations with crashes, delays, duplicates and disorder`, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      expect(failureOf(await simulate(seed))).toBe('');
    }
  }, 300_000);

  test('makes seven attempts at the promised times, and then ends exhausted, when all goes well but the endpoint', async () => {
    expect(PROMISED_DELAYS_MS).toEqual([
      5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000,
    ]);
    for (let seed = 1; seed <= 10; seed += 1) {
      const result = await simulate(seed, { isCalm: true });
      expect(failureOf(result)).toBe('');
      for (const waits of waitsOf(result)) expect(waits).toEqual(PROMISED_DELAYS_MS);
      const deliveries = [...result.mongo.of('deliveries').values()];
      expect(deliveries.map(({ status }) => status)).toEqual(deliveries.map(() => 'exhausted'));
    }
  });

  test('goes the same way twice from the same seed', async () => {
    const [first, second] = [
      await simulate(7, { isTraced: true }),
      await simulate(7, { isTraced: true }),
    ];
    expect(second.trace).toEqual(first.trace);
    expect(first.trace.length).toBeGreaterThan(10);
  });
});

/** Between the end of an attempt and the begin of the next, in milliseconds to the second below. */
function waitsOf({ evidence }: SimulationResult): number[][] {
  const made = Map.groupBy([...evidence.made.values()].flat(), ({ deliveryId }) => deliveryId);
  return [...made.values()].map((requests) =>
    requests.slice(1).map(({ beganMs }, index) => {
      const { beganMs: beforeMs = 0, durationMs = 0 } = requests[index] ?? {};
      return Math.floor((beganMs - beforeMs - durationMs) / 1_000) * 1_000;
    }),
  );
}
