import { expect, test } from '@jest/globals';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { createCompanies } from './companies.ts';

const logger = { warn: () => undefined };

type Read = () => Promise<Map<string, number>>;

const finds = (...suspended: [string, number][]): Read => {
  return () => Promise.resolve(new Map(suspended));
};

let reads: Read[] = [];
let isFollowed = false;

function openCompanies() {
  return createCompanies({
    life: {
      listSuspended: () => reads.shift()?.() ?? Promise.reject(new Error('no read is expected')),
      statusOf: () => Promise.reject(new Error('not part of this test')),
    },
    suspended: new Map([['comp_1', 1_000]]),
    areChangesFollowed: () => isFollowed,
    keepTrying,
    logger,
  });
}

test('the companies that are suspended are those of the last read that succeeded', async () => {
  reads = [finds(['comp_2', 4_000]), () => Promise.reject(new Error('the store is away')), finds()];
  isFollowed = false;
  const companies = openCompanies();
  const shown = () => ['comp_1', 'comp_2'].map(companies.isSuspended);
  expect(shown()).toEqual([true, false]);
  await companies.tick();
  expect(shown()).toEqual([false, true]);
  await companies.tick();
  expect(shown()).toEqual([false, true]);
  await companies.tick();
  expect(shown()).toEqual([false, false]);
});

test('while changes are followed, they are read when a company has changed', async () => {
  reads = [finds(['comp_1', 1_000]), finds()];
  isFollowed = true;
  const companies = openCompanies();
  await companies.tick();
  await companies.tick();
  expect([reads.length, companies.isSuspended('comp_1')]).toEqual([1, true]);
  companies.forget();
  await companies.tick();
  expect(companies.isSuspended('comp_1')).toBe(false);
});

test('they are read once more when a company changes during the read', async () => {
  isFollowed = true;
  const companies = openCompanies();
  reads = [
    async () => {
      await Promise.resolve();
      companies.forget();
      return new Map();
    },
    finds(['comp_2', 4_000]),
  ];
  await companies.tick();
  expect(companies.isSuspended('comp_2')).toBe(true);
});
