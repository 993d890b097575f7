import { describe, expect, test } from '@jest/globals';
import type { Usage } from '../../measure/watch-usage.ts';
import { createTimeLeft, baselineOf, watchRecovery } from './rest.ts';

function usageOf(residentBytes: Record<string, number>): Usage {
  const parts = Object.entries(residentBytes);
  return Object.fromEntries(
    parts.map(([part, bytes]) => [part, { cpuSeconds: 0, residentBytes: bytes }]),
  );
}

const BASELINE = { gateway: 100, dispatcher: 100, retry: null };

describe('the baseline', () => {
  test('is the median of the last samples', () => {
    const samples = [900, 100, 130, 110].map((gateway, n) => ({
      atMs: n,
      usage: usageOf({ gateway }),
    }));
    expect(baselineOf(samples, 1)).toEqual({ gateway: 110, dispatcher: null, retry: null });
  });
});

describe('the recovery', () => {
  test('is complete when every service that can be read is within 20 %', () => {
    const watch = watchRecovery(BASELINE);
    expect(watch.record(usageOf({ gateway: 120, dispatcher: 300 }), 1)).toBe(false);
    expect(watch.record(usageOf({ gateway: 90, dispatcher: 121 }), 2)).toBe(false);
    expect(watch.record(usageOf({ gateway: 90, dispatcher: 115 }), 3)).toBe(true);
    expect(watch.result()).toEqual({
      gateway: { baselineBytes: 100, endBytes: 90, recoveredAfterSeconds: 1 },
      dispatcher: { baselineBytes: 100, endBytes: 115, recoveredAfterSeconds: 3 },
      retry: null,
    });
  });

  test('is not complete while a recovered service has grown again', () => {
    const watch = watchRecovery(BASELINE);
    watch.record(usageOf({ gateway: 100, dispatcher: 300 }), 1);
    expect(watch.record(usageOf({ gateway: 200, dispatcher: 100 }), 2)).toBe(false);
    expect(watch.result().gateway).toMatchObject({ endBytes: 200, recoveredAfterSeconds: 1 });
  });
});

test('a wait gets the requested time, the time that is left of the run, or a minimum', () => {
  let nowMs = 0;
  const { atMost } = createTimeLeft(1_000, () => nowMs);
  expect(atMost(300, 400)).toBe(300);
  nowMs = 500_000;
  expect(atMost(300, 400)).toBe(100);
  expect(atMost(300, 490)).toBe(15);
  expect(atMost(5, 490)).toBe(5);
});
