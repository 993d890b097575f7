import { expect, test } from '@jest/globals';
import { idPattern } from '@posthorn/domain/ids.ts';
import { isWellFormedKey } from '@posthorn/platform/mongo/companies/companies.ts';
import { createRandom } from '../../test/support/samples/seeded-random.ts';
import { addressOf, apiKeyOf, appIdOf, createPicker, createZipf } from './population.ts';

/** Numbers from 0 to 1 at equal distances. */
function evenly(count: number): () => number {
  let drawn = 0;
  return () => (drawn++ + 0.5) / count;
}

/** Returns how often each of the numbers from 0 to size - 1 was drawn. */
function counted(size: number, draws: number, draw: () => number): number[] {
  const counts = Array.from({ length: size }, () => 0);
  for (let n = 0; n < draws; n += 1) {
    const number = draw();
    counts[number] = (counts[number] ?? 0) + 1;
  }
  return counts;
}

test('numbers drawn by the law of Zipf are as frequent as their rank says, or equally with exponent 0', () => {
  // 1 + 1/2 + 1/3 + 1/4 = 25/12.
  const draw = createZipf(4, 1, evenly(2_500));
  expect(counted(4, 2_500, draw)).toEqual([1_200, 600, 400, 300]);
  expect(counted(5, 100, createZipf(5, 0, evenly(100)))).toEqual([20, 20, 20, 20, 20]);
});

test.each([
  { companies: 4, workingSet: 10, exponent: 1 },
  { companies: 100, workingSet: 3, exponent: 0 },
])('every webhook of the working set is drawn, and no other: %o', (spec) => {
  const counts = counted(spec.workingSet, 1_000, createPicker(spec, createRandom(1)));
  expect(counts).toHaveLength(spec.workingSet);
  expect(Math.min(...counts)).toBeGreaterThan(0);
});

test('ids and keys are valid, different, and the same in each run', () => {
  expect(appIdOf(0)).toMatch(idPattern('app'));
  expect(appIdOf(999_999)).toMatch(idPattern('app'));
  expect(isWellFormedKey(apiKeyOf(7))).toBe(true);
  expect(new Set([apiKeyOf(1), apiKeyOf(2), apiKeyOf(1)]).size).toBe(2);
});

test('the servers listen on different addresses of the loopback interface', () => {
  const hosts = Array.from({ length: 2_000 }, (_, origin) => addressOf(origin).host);
  expect(new Set(hosts).size).toBe(2_000);
  const isLoopback = (host: string): boolean => {
    const parts = host.split('.').map(Number);
    return parts[0] === 127 && parts.every((part) => part <= 255);
  };
  expect(hosts.every(isLoopback)).toBe(true);
});
