import { beforeEach, expect, test } from '@jest/globals';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../test/support/memory/memory-leases.ts';
import { createAddUpCounts } from './add-up-counts.ts';

let nowMs: number;
let buckets: number[];
let added: number[];
let updates: number;
let leases: MemoryLeases;
let loop: Loop;

beforeEach(() => {
  [nowMs, buckets, added, updates] = [0, [1, 2, 3], [], 0];
  leases = createMemoryLeases();
  loop = createAddUpCounts({
    holder: 'process-1',
    leases,
    journal: {
      isEmpty: () => Promise.resolve(buckets.length === 0),
      addUp(fromBucket) {
        const bucket = buckets.find((each) => each >= fromBucket);
        if (bucket === undefined) return Promise.resolve({ updates: 0, next: null });
        added.push(bucket);
        return Promise.resolve({ updates, next: bucket + 1 });
      },
    },
    logger: { warn: () => undefined },
    monotonicMs: () => nowMs,
  });
});

async function tickAt(ms: number): Promise<number[]> {
  [nowMs, added] = [ms, []];
  await loop.tick();
  return added;
}

test('counts are added up every five seconds while few webhooks are in use', async () => {
  expect(await tickAt(0)).toEqual([1, 2, 3]);
  expect(await tickAt(4_999)).toEqual([]);
  expect(await tickAt(5_000)).toEqual([1, 2, 3]);
});

test.each([
  [4_000, 63],
  [6_000_000, 2_449],
])('counts of %d webhooks, apps and companies are added up every %d s', async (count, seconds) => {
  updates = count / 3;
  await tickAt(0);
  expect(await tickAt(seconds * 1_000 - 1_000)).toEqual([]);
  expect(await tickAt(seconds * 1_000 + 1_000)).toEqual([1, 2, 3]);
});

test('counts are added up by one process, and its lease ends with it', async () => {
  leases.holders.set('add up counts', 'process-2');
  expect(await tickAt(0)).toEqual([]);
  leases.holders.clear();
  expect(await tickAt(5_000)).toEqual([1, 2, 3]);
  expect(leases.holders.get('add up counts')).toBe('process-1');
  await loop.stop();
  expect(leases.holders.size).toBe(0);
});

test('counts cost no lease while there are none', async () => {
  buckets = [];
  await tickAt(0);
  expect(leases.holders.size).toBe(0);
});
