import { beforeEach, describe, expect, test } from '@jest/globals';
import type { RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createSampleTree,
  type MemoryRemovals,
} from '../../../../test/support/memory/memory-removals.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { createRemovals, type RemovalDeps, type Removals } from './remove-tree.ts';

let tree: MemoryRemovals;
let leases: MemoryLeases;
let warned: string[];

beforeEach(() => {
  [tree, leases, warned] = [createSampleTree(), createMemoryLeases(), []];
});

function removals(overrides: Partial<RemovalDeps> = {}): Removals {
  const warn = (_fields: unknown, text?: string): void => void warned.push(text ?? '');
  return createRemovals({
    holder: 'b',
    removals: tree.store,
    leases,
    newId: countingIds(),
    nowMs: () => 1,
    invalidate: () => Promise.resolve(),
    logger: { warn },
    ...overrides,
  });
}

/** Stores the record of a removal by another process for each of these apps. `holder` has their leases. */
function storeRemovals(numbers: readonly number[], holder?: string): void {
  for (const n of numbers) {
    const id = `rmv_${String(n).padStart(3, '0')}`;
    tree.notes.set(id, { id, companyId: 'comp_a', kind: 'app', rootId: `app_${n}` });
    tree.apps.set(`app_${n}`, { projectId: 'proj_1' });
    if (holder) leases.holders.set(`removal/${id}`, holder);
  }
}

const numbersTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('a round of unfinished removals', () => {
  test('reaches the ones after any number that other processes hold', async () => {
    storeRemovals(numbersTo(250), 'a');
    storeRemovals([250, 251]);
    await removals().tick();
    expect([tree.notes.size, tree.apps.has('app_251')]).toEqual([250, false]);
    expect(warned).toEqual([]);
  });

  test('works on at most a hundred at once, even when rounds overlap', async () => {
    storeRemovals(numbersTo(230));
    let [atWork, most] = [0, 0];
    const webhooksUnder: RemovalStore['webhooksUnder'] = async (...args) => {
      atWork += 1;
      most = Math.max(most, atWork);
      const found = await tree.store.webhooksUnder(...args);
      atWork -= 1;
      return found;
    };
    const { tick } = removals({ removals: { ...tree.store, webhooksUnder } });
    await Promise.all([tick(), tick()]);
    expect([tree.notes.size, most <= 100]).toEqual([0, true]);
  });

  test('that cannot list them is logged once, and the next one does the work', async () => {
    storeRemovals([1]);
    let isAway = true;
    const list: RemovalStore['list'] = (...args) =>
      isAway ? Promise.reject(new Error('MongoDB is away')) : tree.store.list(...args);
    const { tick } = removals({ removals: { ...tree.store, list } });
    await tick();
    expect([warned, tree.notes.size]).toEqual([['a tick failed, retrying'], 1]);
    isAway = false;
    await tick();
    expect([warned.length, tree.notes.size]).toEqual([1, 0]);
  });

  test('starts nothing more once the process stops', async () => {
    storeRemovals(numbersTo(150));
    let unblock: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => (unblock = resolve));
    const removeRoot: RemovalStore['removeRoot'] = async (removal) => {
      await blocked;
      return tree.store.removeRoot(removal);
    };
    const { tick, stop } = removals({ removals: { ...tree.store, removeRoot } });
    const round = tick();
    const stopped = stop();
    unblock();
    await Promise.all([round, stopped]);
    expect(tree.notes.size).toBe(150);
  });
});
