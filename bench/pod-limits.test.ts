import { expect, test } from '@jest/globals';
import { SERVICES } from '../tools/local-stack/supervisor/services.ts';
import { podMemoryLimits, bytesOfQuantity } from './pod-limits.ts';

test('the manifests limit the memory of every service', () => {
  const limits = podMemoryLimits();
  for (const service of SERVICES) expect(limits[service]).toBeGreaterThan(64 * 2 ** 20);
});

test.each([
  ['768Mi', 768 * 1_048_576],
  ['1.5Gi', 1_610_612_736],
  ['500M', 500_000_000],
  ['134217728', 134_217_728],
])('%s of memory is %i bytes', (quantity: string, bytes: number) => {
  expect(bytesOfQuantity(quantity)).toBe(bytes);
});

test.each(['', '500m', 'Mi', '-1'])('rejects "%s" as a memory quantity', (quantity: string) => {
  expect(() => bytesOfQuantity(quantity)).toThrow('is not a memory quantity');
});
