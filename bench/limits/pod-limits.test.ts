import { expect, test } from '@jest/globals';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { podMemoryLimits } from './pod-limits.ts';

test('the manifests limit the memory of every service', () => {
  const limits = podMemoryLimits();
  for (const service of SERVICES) expect(limits[service]).toBeGreaterThan(64 * 2 ** 20);
});
