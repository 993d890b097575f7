import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createSampleTree,
  type MemoryRemovals,
} from '../../../../test/support/memory/memory-removals.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { createRemoveTree, type RemoveTreeDeps, type Root } from './remove-tree.ts';

const APP: Root = { companyId: 'comp_a', kind: 'app', id: 'app_1' };

let tree: MemoryRemovals;
let nowMs: number;
let steps: string[];

beforeEach(() => {
  [tree, nowMs, steps] = [createSampleTree(), 0, []];
});

/** Removes with a retry service that ends each removal at this time. */
function removeUntil(endsAtMs: number, overrides: Partial<RemoveTreeDeps> = {}) {
  const removals = new Proxy(tree.store, {
    get: (store, name: keyof typeof tree.store) => {
      steps.push(name);
      return store[name];
    },
  });
  return createRemoveTree({
    removals,
    invalidate: (...changed) =>
      Promise.resolve(void steps.push(`forget ${changed.map(({ id }) => id).join()}`)),
    wake: () => void steps.push('wake'),
    newId: countingIds(),
    monotonicMs: () => nowMs,
    sleep(ms) {
      nowMs += ms;
      if (nowMs >= endsAtMs) tree.notes.clear();
      return Promise.resolve();
    },
    ...overrides,
  });
}

describe('a removal that a client asks for', () => {
  test('stores its note, removes the root, wakes the retry service and waits for it', async () => {
    expect(await removeUntil(100)(APP)).toBe(true);
    const changes = steps.filter((step) => step !== 'isRunning');
    expect(changes).toEqual(['hasRoot', 'insert', 'removeRoot', 'forget app_1', 'wake']);
    expect([tree.apps.has('app_1'), nowMs >= 100, nowMs < 200]).toEqual([false, true, true]);
  });

  test('is answered after two seconds when there is more to remove', async () => {
    expect(await removeUntil(60_000)(APP)).toBe(true);
    expect([nowMs, tree.notes.size]).toEqual([2_000, 1]);
  });

  test('counts the time that removing the root has taken', async () => {
    const removeRoot: RemoveTreeDeps['removals']['removeRoot'] = (removal) => {
      nowMs += 1_500;
      return tree.store.removeRoot(removal);
    };
    await removeUntil(60_000, { removals: { ...tree.store, removeRoot } })(APP);
    expect(nowMs).toBe(2_000);
  });

  test('of what does not exist resolves false and stores no note', async () => {
    expect(await removeUntil(1)({ ...APP, id: 'app_gone' })).toBe(false);
    expect(tree.notes.size).toBe(0);
  });
});
