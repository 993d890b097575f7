import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import type { Loop } from '../async/loop.ts';
import { LEASE_MS } from '../mongo/leases.ts';
import { createLeasedLoop, type KeepLease } from './leased-loop.ts';

let leases: MemoryLeases;
let nowMs: number;
let asked: number;
let run: (keep: KeepLease) => Promise<void>;
const logger = { warn: () => undefined };

beforeEach(() => {
  leases = createMemoryLeases();
  [nowMs, asked] = [0, 0];
});

function loop(options: { keepsLease?: true } = {}): Loop {
  return createLeasedLoop({
    name: 'tested loop',
    lease: 'tested',
    holder: 'one',
    leases: {
      ...leases,
      hold(...given) {
        asked += 1;
        return leases.hold(...given);
      },
    },
    everyMs: 1_000,
    run: (keep) => run(keep),
    monotonicMs: () => nowMs,
    logger,
    ...options,
  });
}

describe('the lease of a loop', () => {
  test('is taken when the work asks for it, and ends with the tick', async () => {
    run = async (keep) => {
      expect(leases.holders.size).toBe(0);
      expect(await keep()).toBe(true);
      expect(leases.holders.get('tested')).toBe('one');
    };
    await loop().tick();
    expect([asked, leases.holders.size]).toEqual([1, 0]);
  });

  test('ends with a tick that fails, and is not asked for when the work needs none', async () => {
    run = async (keep) => {
      await keep();
      throw new Error('MongoDB is away');
    };
    await loop().tick();
    run = () => Promise.resolve();
    await loop().tick();
    expect([asked, leases.holders.size]).toEqual([1, 0]);
  });

  test('is renewed in time, not with each step', async () => {
    run = async (keep) => {
      for (let step = 0; step < 100; step += 1) {
        expect(await keep()).toBe(true);
        nowMs += 200;
      }
    };
    await loop().tick();
    expect(asked).toBe(6);
  });

  test('of another process ends the work, also in the middle', async () => {
    const kept: boolean[] = [];
    run = async (keep) => {
      kept.push(await keep());
      leases.holders.set('tested', 'other');
      nowMs += LEASE_MS / 4;
      kept.push(await keep());
    };
    await loop().tick();
    await loop().tick();
    expect([kept, leases.holders.get('tested')]).toEqual([[true, false, false, false], 'other']);
  });

  test('is kept until the loop stops, and asked for again in time only', async () => {
    run = async (keep) => void (await keep());
    const kept = loop({ keepsLease: true });
    for (let tick = 0; tick < 10; tick += 1) {
      await kept.tick();
      nowMs += 500;
    }
    expect([asked, leases.holders.get('tested')]).toEqual([2, 'one']);
    await kept.stop();
    expect(leases.holders.size).toBe(0);
  });

  test('of a share ends when the tick asks for another one, and with the tick', async () => {
    const held: string[][] = [];
    run = async (keep) => {
      for (const share of [0, 1, 1, undefined, 2]) {
        expect(await keep(share)).toBe(true);
        held.push([...leases.holders.keys()]);
      }
    };
    await loop().tick();
    expect(held.flat()).toEqual(['tested/0', 'tested/1', 'tested/1', 'tested', 'tested/2']);
    expect([asked, leases.holders.size]).toEqual([4, 0]);
  });

  test('of a share that another process has stays with it, and the next share is asked for', async () => {
    leases.holders.set('tested/0', 'other');
    run = async (keep) => {
      expect([await keep(0), await keep(0), await keep(1)]).toEqual([false, false, true]);
      expect(await keep(0)).toBe(false);
    };
    await loop().tick();
    expect([...leases.holders]).toEqual([['tested/0', 'other']]);
  });

  test('ends the work when the loop stops', async () => {
    const stopped: Promise<void>[] = [];
    run = async (keep) => {
      expect(await keep()).toBe(true);
      stopped.push(stopping.stop());
      expect(await keep()).toBe(false);
    };
    const stopping = loop();
    await stopping.tick();
    await Promise.all(stopped);
    expect(leases.holders.size).toBe(0);
  });
});
