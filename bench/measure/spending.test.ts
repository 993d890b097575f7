import { describe, expect, test } from '@jest/globals';
import { figuresOf, usageSeconds } from './spending.ts';

const MIB = 2 ** 20;

describe('the usage of a part', () => {
  test('is given per thousand messages and as cores', () => {
    const before = { gateway: { cpuSeconds: 10, residentBytes: MIB } };
    const after = { gateway: { cpuSeconds: 14, residentBytes: 200 * MIB } };
    expect(figuresOf({ before, after, seconds: 8, accepted: 20_000 })).toEqual({
      gateway: { cpuSeconds: 4, cpuSecondsPer1000: 0.2, cores: 0.5, residentMiB: 200 },
    });
  });

  test('is left out without a start, and null per thousand messages when none was accepted', () => {
    const usage = { redis: { cpuSeconds: 1, residentBytes: 1 } };
    expect(figuresOf({ before: {}, after: usage, seconds: 1, accepted: 1 })).toEqual({});
    const figures = figuresOf({ before: usage, after: usage, seconds: 1, accepted: 0 });
    expect(figures.redis?.cpuSecondsPer1000).toBeNull();
  });

  test('per second is the difference to the previous sample, within the phase', () => {
    const samples = [
      { atMs: 0, usage: { kafka: { cpuSeconds: 5, residentBytes: MIB } } },
      { atMs: 1_000, usage: { kafka: { cpuSeconds: 6, residentBytes: 2 * MIB } } },
      { atMs: 3_000, usage: { kafka: { cpuSeconds: 7, residentBytes: 3 * MIB } } },
    ];
    expect(usageSeconds(samples, 500)).toEqual({
      kafka: [{ second: 2.5, cores: 0.5, residentMiB: 3 }],
    });
  });
});
