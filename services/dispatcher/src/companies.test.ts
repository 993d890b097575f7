import { expect, test } from '@jest/globals';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { createCompanies } from './companies.ts';

const logger = { warn: () => undefined };

test('the companies that are suspended are those of the last read that succeeded', async () => {
  const reads: (() => Promise<Map<string, number>>)[] = [
    () => Promise.resolve(new Map([['comp_2', 4_000]])),
    () => Promise.reject(new Error('the store is away')),
    () => Promise.resolve(new Map()),
  ];
  const companies = createCompanies({
    life: {
      listSuspended: () => reads.shift()?.() ?? Promise.resolve(new Map()),
      statusOf: () => Promise.reject(new Error('not part of this test')),
    },
    suspended: new Map([['comp_1', 1_000]]),
    keepTrying,
    nowMs: () => 5_000,
    logger,
  });
  const shown = () => ['comp_1', 'comp_2'].map(companies.suspendedForMs);
  expect(shown()).toEqual([4_000, null]);
  await companies.tick();
  expect(shown()).toEqual([null, 1_000]);
  await companies.tick();
  expect(shown()).toEqual([null, 1_000]);
  await companies.tick();
  expect(shown()).toEqual([null, null]);
});
