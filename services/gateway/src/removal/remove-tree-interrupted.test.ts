import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { RemovalStore } from '@posthorn/platform/mongo/removals.ts';
import { interruptAt, type Moment } from '../../../../test/support/stores/interrupted.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  leftOf,
  plantTree,
  WITHOUT_THE_FIRST_PROJECT,
  type MemoryRemovals,
} from '../../../../test/support/memory/memory-removals.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { createRemovals, type RemovalDeps, type Removals, type Root } from './remove-tree.ts';

const PROJECT: Root = { companyId: 'comp_a', kind: 'project', id: 'proj_1' };
const APP: Root = { companyId: 'comp_a', kind: 'app', id: 'app_1' };

let tree: MemoryRemovals;
let leases: MemoryLeases;

beforeEach(() => {
  [tree, leases] = [plantTree(), createMemoryLeases()];
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

const left = () => ({ ...leftOf(tree), leases: leases.holders.size });

describe('a removal whose process ends', () => {
  test.each<Moment>(['before', 'after'])(
    'is finished by another one, once it was noted: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        [tree, leases] = [plantTree(), createMemoryLeases()];
        const { wrap, wasReached } = interruptAt(nth, moment);
        const parts = { removals: wrap(tree.store), leases: wrap(leases) };
        const answer = await removals('a', parts)
          .remove(PROJECT)
          .catch(() => 'no answer');
        const wasNoted = tree.notes.size > 0 || !tree.projects.has('proj_1');
        // Whoever was answered finds nothing left of the root.
        if (answer === true) expect(tree.projects.has('proj_1')).toBe(false);
        leases.holders.clear();
        await removals('b').tick();
        if (wasNoted) expect(leftOf(tree)).toEqual(WITHOUT_THE_FIRST_PROJECT);
        else expect(left().projects).toContain('proj_1');
        if (!wasReached()) break;
        expect(nth).toBeLessThan(50);
      }
    },
  );

  test('is left alone while another process holds it', async () => {
    tree.notes.set('rmv_1', { _id: 'rmv_1', companyId: 'comp_a', kind: 'app', rootId: 'app_1' });
    leases.holders.set('removal/rmv_1', 'a');
    const before = left();
    await removals('b').tick();
    expect(left()).toEqual(before);
    leases.holders.clear();
    await removals('b').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
  });
});

describe('the answer to a removal', () => {
  const hung = () => {
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const cancelPending: RemovalStore['cancelPending'] = async (...args) => {
      await held;
      return tree.store.cancelPending(...args);
    };
    return { letGo, store: { ...tree.store, cancelPending } };
  };

  test('comes after 25 seconds at the latest, and the rest follows behind it', async () => {
    jest.useFakeTimers();
    const { letGo, store } = hung();
    const { remove, tick } = removals('a', { removals: store });
    let answer: boolean | null = null;
    void remove(APP).then((found) => (answer = found));
    await jest.advanceTimersByTimeAsync(24_999);
    expect([answer, tree.apps.has('app_1'), tree.webhooks.has('wh_1')]).toEqual([
      null,
      false,
      true,
    ]);
    await jest.advanceTimersByTimeAsync(1);
    expect([answer, tree.webhooks.has('wh_1')]).toEqual([true, true]);
    letGo();
    await tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
    expect(tree.webhooks.has('wh_1')).toBe(false);
  });

  test('leaves no timer behind when the removal was fast', async () => {
    jest.useFakeTimers();
    await removals('a').remove(APP);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('is given also when the rest fails, which the next round does', async () => {
    const failing = { ...tree.store, finish: () => Promise.reject(new Error('MongoDB is away')) };
    expect(await removals('a', { removals: failing }).remove(APP)).toBe(true);
    expect(tree.notes.size).toBe(1);
    await removals('a').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0, leases: 0 });
  });

  test('does not keep a stop waiting: what is left stays noted for another process', async () => {
    jest.useFakeTimers();
    const { letGo, store } = hung();
    const first = removals('a', { removals: store });
    const answer = first.remove(APP);
    await jest.advanceTimersByTimeAsync(1);
    const stopped = first.stop();
    letGo();
    await stopped;
    expect([await answer, tree.notes.size]).toEqual([true, 1]);
    leases.holders.clear();
    await removals('b').tick();
    expect(left()).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0 });
  });
});
