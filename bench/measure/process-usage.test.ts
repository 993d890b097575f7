import { expect, test } from '@jest/globals';
import { parseMachineCpuSeconds, parseProcessUsage } from './process-usage.ts';

test('reads times and memory after a command with spaces and parentheses', () => {
  const stat =
    '42 (C:\\a b) (x) S 1 42 42 0 -1 4194560 9 0 0 0 250 150 0 0 20 0 11 0 777 123456789 300 0';
  expect(parseProcessUsage(stat, { ticksPerSecond: 100, pageBytes: 4_096 })).toEqual({
    cpuSeconds: 4,
    residentBytes: 300 * 4_096,
  });
});

test('sums the CPU time of the machine without idle and waiting time', () => {
  const stat = 'cpu  100 10 50 9000 70 5 35 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n';
  expect(parseMachineCpuSeconds(stat, 100)).toBe(2);
});
