import { expect, test } from '@jest/globals';
import { watchPeaks, type Usage } from './watch-usage.ts';

test('each take returns the highest value since the previous one, and null for what cannot be read', () => {
  const usages: Usage[] = [90, 50, 70].map((residentBytes) => ({
    dispatcher: { cpuSeconds: 0, residentBytes },
  }));
  const peaks = watchPeaks({ read: () => usages.shift() ?? {} });
  expect(peaks.take()).toEqual({ gateway: null, dispatcher: 90, retry: null });
  expect(peaks.take().dispatcher).toBe(50);
  expect(peaks.take().dispatcher).toBe(70);
  peaks.stop();
});
