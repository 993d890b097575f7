import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createSampleTree,
  type MemoryRemovals,
  remainingIn,
  WITHOUT_THE_FIRST_PROJECT,
} from '../../../../test/support/memory/memory-removals.ts';
import { interruptAt, type Moment } from '../../../../test/support/process/interrupt-at.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { createRemovals, type RemovalDeps, type Removals, type Root } from './remove-tree.ts';

const PROJECT: Root = { companyId: 'comp_a', kind: 'project', id: 'proj_1' };
const APP: Root = { companyId: 'comp_a', kind: 'app', id: 'app_1' };

let tree: MemoryRemovals;
let leases: MemoryLeases;

beforeEach(() => {
  [tree, leases] = [createSampleTree(), createMemoryLeases()];
});

afterEach(() => {
  jest.useRealTimers();
});

function removals(holder: string, overrides: Partial<RemovalDeps> = {}): Removals {
  return createRemovals({
    holder,
    removals: tree.store,
    leases,
    newId: countingIds(),
    nowMs: () => 1,
    invalidate: () => Promise.resolve(),
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

const left = () => ({ ...remainingIn(tree), leases: leases.holders.size });

describe('a removal whose process ends', () => {
  test.each<Moment>(['before', 'after'])(
    'is finished by another one, once its record is stored: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        [tree, leases] = [createSampleTree(), createMemoryLeases()];
        const { wrap, wasReached } = interruptAt(nth, moment);
        const parts = { removals: wrap(tree.store), leases: wrap(leases) };
        const answer = await removals('a', parts)
          .remove(PROJECT)
          .catch(() => 'no response');
        const wasStored = tree.notes.size > 0 || !tree.projects.has('proj_1');
        // A client that got a response finds nothing left of the root.
        if (answer === true) expect(tree.projects.has('proj_1')).toBe(false);
        leases.holders.clear();
        await removals('b').tick();
        if (wasStored) expect(remainingIn(tree)).toEqual(WITHOUT_THE_FIRST_PROJECT);
        else expect(left().projects).toContain('proj_1');
        if (!wasReached()) break;
        expect(nth).toBeLessThan(50);
      }
    },
  );

  test('is not touched while another process holds it', async () => {
    tree.notes.set('rmv_1', { id: 'rmv_1', companyId: 'comp_a', kind: 'app', rootId: 'app_1' });
    leases.holders.set('removal/rmv_1', 'a');
    const before = left();
    await removals('b').tick();
    expect(left()).toEqual(before);
    leases.holders.clear();
    await removals('b').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
  });
});

describe('the response to a removal', () => {
  const blockedStore = () => {
    let unblock: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => (unblock = resolve));
    const cancelPending: RemovalStore['cancelPending'] = async (...args) => {
      await blocked;
      return tree.store.cancelPending(...args);
    };
    return { unblock, store: { ...tree.store, cancelPending } };
  };

  test('comes after 5 seconds at the latest, and the rest follows', async () => {
    jest.useFakeTimers();
    const { unblock, store } = blockedStore();
    const { remove, tick } = removals('a', { removals: store });
    let answer: boolean | null = null;
    void remove(APP).then((found) => (answer = found));
    await jest.advanceTimersByTimeAsync(4_999);
    expect([answer, tree.apps.has('app_1'), tree.webhooks.has('wh_1')]).toEqual([
      null,
      false,
      true,
    ]);
    await jest.advanceTimersByTimeAsync(1);
    expect([answer, tree.webhooks.has('wh_1')]).toEqual([true, true]);
    unblock();
    await tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
    expect(tree.webhooks.has('wh_1')).toBe(false);
  });

  test('counts the time that removing the root itself has taken', async () => {
    jest.useFakeTimers();
    const { unblock, store } = blockedStore();
    const removeRoot: RemovalStore['removeRoot'] = async (removal) => {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return tree.store.removeRoot(removal);
    };
    const { remove, tick } = removals('a', { removals: { ...store, removeRoot } });
    let answer: boolean | null = null;
    void remove(APP).then((found) => (answer = found));
    await jest.advanceTimersByTimeAsync(4_999);
    expect(answer).toBeNull();
    await jest.advanceTimersByTimeAsync(1);
    expect(answer).toBe(true);
    unblock();
    await tick();
  });

  test('leaves no timer when the removal was fast', async () => {
    jest.useFakeTimers();
    await removals('a').remove(APP);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('comes even when the rest fails, which the next round does', async () => {
    const failing = { ...tree.store, finish: () => Promise.reject(new Error('MongoDB is away')) };
    expect(await removals('a', { removals: failing }).remove(APP)).toBe(true);
    expect(tree.notes.size).toBe(1);
    await removals('a').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
  });

  test('does not delay a stop: the record of the removal stays for another process', async () => {
    jest.useFakeTimers();
    const { unblock, store } = blockedStore();
    const first = removals('a', { removals: store });
    const answer = first.remove(APP);
    await jest.advanceTimersByTimeAsync(1);
    const stopped = first.stop();
    unblock();
    await stopped;
    expect([await answer, tree.notes.size]).toEqual([true, 1]);
    leases.holders.clear();
    await removals('b').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0 });
  });
});
