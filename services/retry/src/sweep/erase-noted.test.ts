import { beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import { createEraseNoted, createEraseRequested } from './erase-noted.ts';

let leases: MemoryLeases;
/** How many messages each of the next checks finds. */
let found: number[];
/** The same of the messages that clients have erased. */
let requested: number[];
let nowMs: number;
let restedMs: number[];

beforeEach(() => {
  leases = createMemoryLeases();
  [found, requested, nowMs, restedMs] = [[], [], 0, []];
});

const open = (pause?: () => Promise<void>, create = createEraseNoted) =>
  create({
    holder: 'retry-1',
    leases,
    erasure: {
      hasDue: () => Promise.resolve(found.length > 0),
      checkNoted() {
        nowMs += 30;
        return Promise.resolve(found.shift() ?? 0);
      },
    },
    requested: {
      hasDue: () => Promise.resolve(requested.length > 0),
      async eraseDue(betweenSlices) {
        await betweenSlices?.();
        return requested.shift() ?? 0;
      },
    },
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    pause: (ms) => {
      restedMs.push(ms);
      return pause?.() ?? Promise.resolve();
    },
    logger: createLogger('test', 'silent'),
  });

test('checks what is noted until nothing is left, and rests as long as it worked', async () => {
  found = [100, 100, 3, 0, 7];
  await open().tick();
  expect([found, restedMs]).toEqual([[7], [30, 30, 30]]);
  expect(leases.holders.size).toBe(0);
});

test('erases what clients have erased beside it, with a lease of its own', async () => {
  [found, requested] = [
    [100, 0],
    [20, 3, 0, 7],
  ];
  const again = open(undefined, createEraseRequested);
  await Promise.all([open().tick(), again.tick()]);
  expect([found, requested]).toEqual([[], [7]]);
  await leases.hold('erase-payloads', 'retry-2');
  await again.tick();
  expect(requested).toEqual([]);
});

test('takes no lease while nothing is due', async () => {
  const held: string[] = [];
  const hold = leases.hold.bind(leases);
  leases.hold = (name, holder) => {
    held.push(name);
    return hold(name, holder);
  };
  await Promise.all([open().tick(), open(undefined, createEraseRequested).tick()]);
  expect(held).toEqual([]);
});

test('checks nothing while another process has the lease, and stops when it has lost it', async () => {
  await leases.hold('erase-payloads', 'retry-2');
  found = [100, 100];
  await open().tick();
  expect(found).toEqual([100, 100]);
  await leases.release('erase-payloads', 'retry-2');
  const loser = open(async () => {
    nowMs += LEASE_MS;
    await leases.release('erase-payloads', 'retry-1');
    await leases.hold('erase-payloads', 'retry-2');
  });
  await loser.tick();
  expect(found).toEqual([100]);
});

test('stops between two checks', async () => {
  found = [100, 100, 100];
  const stops: Promise<void>[] = [];
  const loop = open(() => {
    stops.push(loop.stop());
    return Promise.resolve();
  });
  await loop.tick();
  await Promise.all(stops);
  expect(found).toEqual([100, 100]);
});
