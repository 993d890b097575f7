import { beforeEach, describe, expect, test } from '@jest/globals';
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
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import {
  type CompanyRemovalsDeps,
  createCompanyRemovals,
  createRemovals,
  QUIET_MS,
  type RemovalDeps,
  type Removals,
  type Root,
} from './remove-tree.ts';

describe('remove tree', () => {
  const PROJECT: Root = { companyId: 'comp_a', kind: 'project', id: 'proj_1' };
  const APP: Root = { companyId: 'comp_a', kind: 'app', id: 'app_1' };
  const WEBHOOK: Root = { companyId: 'comp_a', kind: 'webhook', id: 'wh_1' };

  let tree: MemoryRemovals;
  let leases: MemoryLeases;
  /** Ids of the announced invalidations, in order. */
  let forgotten: string[];

  beforeEach(() => {
    [tree, leases, forgotten] = [createSampleTree(), createMemoryLeases(), []];
  });

  const invalidate: RemovalDeps['invalidate'] = (...changed) => {
    forgotten.push(...changed.map(({ id }) => id));
    return Promise.resolve();
  };

  function removals(holder: string, overrides: Partial<RemovalDeps> = {}): Removals {
    return createRemovals({
      holder,
      removals: tree.store,
      leases,
      newId: countingIds(),
      nowMs: () => 1,
      invalidate,
      logger: createLogger('test', 'silent'),
      ...overrides,
    });
  }

  describe('a removal', () => {
    test('of a project removes its apps, their webhooks and its global ones, and nothing else', async () => {
      expect(await removals('a').remove(PROJECT)).toBe(true);
      expect(remainingIn(tree)).toEqual(WITHOUT_THE_FIRST_PROJECT);
      expect(leases.holders.size).toBe(0);
      // By their ids: what is cached of other companies stays.
      expect(forgotten.sort()).toEqual(['app_1', 'app_2', 'proj_1', 'wh_1', 'wh_2', 'wh_global']);
    });

    test('of an app removes its webhooks', async () => {
      expect(await removals('a').remove(APP)).toBe(true);
      expect(remainingIn(tree)).toMatchObject({
        projects: ['proj_1', 'proj_2'],
        apps: ['app_2', 'app_3'],
        notes: 0,
        webhooks: ['wh_2', 'wh_3', 'wh_global'],
        pending: ['wh_2', 'wh_3', 'wh_global'],
      });
    });

    test('of a webhook cancels its pending deliveries, however many', async () => {
      for (let n = 0; n < 4_500; n += 1) tree.pending.set(`dlv_${n}`, 'wh_1');
      expect(await removals('a').remove(WEBHOOK)).toBe(true);
      expect(remainingIn(tree)).toMatchObject({
        webhooks: ['wh_2', 'wh_3', 'wh_global'],
        pending: ['wh_2', 'wh_3', 'wh_global'],
        apps: ['app_1', 'app_2', 'app_3'],
        notes: 0,
      });
    });

    test('removes 4,500 webhooks in steps of 1,000 and renews its lease before each', async () => {
      tree.webhooks.clear();
      for (let n = 0; n < 4_500; n += 1) tree.webhooks.set(`wh_${n}`, { projectId: 'proj_1' });
      const sizes: number[] = [];
      const removeWebhooks: RemovalStore['removeWebhooks'] = (companyId, ids) => {
        expect([...leases.holders.values()]).toEqual(['a']);
        sizes.push(ids.length);
        return tree.store.removeWebhooks(companyId, ids);
      };
      await removals('a', { removals: { ...tree.store, removeWebhooks } }).remove(PROJECT);
      expect(sizes).toEqual([1_000, 1_000, 1_000, 1_000, 500]);
      expect(tree.webhooks.size).toBe(0);
    });

    test('of what does not exist resolves false and stores no record', async () => {
      expect(await removals('a').remove({ ...APP, id: 'app_gone' })).toBe(false);
      expect(tree.notes.size).toBe(0);
    });

    test('that five requests ask for at the same time resolves true for each, when it is done', async () => {
      const { remove } = removals('a');
      const answers = await Promise.all(Array.from({ length: 5 }, () => remove(APP)));
      expect(answers).toEqual([true, true, true, true, true]);
      expect(remainingIn(tree)).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0 });
    });

    test('stores its record, then removes the root, then cancels before it removes webhooks', async () => {
      const steps: string[] = [];
      const named = new Proxy(tree.store, {
        get: (store, name: keyof RemovalStore) => {
          steps.push(name);
          return store[name];
        },
      });
      await removals('a', { removals: named }).remove(APP);
      const changes = steps.filter((name) => !/^(has|list)|Under$/.test(name));
      expect(changes).toEqual([
        ...['insert', 'removeRoot', 'removeRoot', 'cancelPending', 'removeWebhooks', 'finish'],
      ]);
    });
  });
});

describe('remove companies', () => {
  /** How many documents each company that is being removed still has. */
  let left: Map<string, number>;
  let steps: string[];
  let leases: ReturnType<typeof createMemoryLeases>;

  beforeEach(() => {
    [left, steps, leases] = [new Map([['comp_1', 1_500]]), [], createMemoryLeases()];
  });

  const logger = { info: () => undefined, warn: () => undefined };

  function removals(holder: string, overrides: Partial<CompanyRemovalsDeps> = {}) {
    return createCompanyRemovals({
      holder,
      leases,
      logger,
      companies: {
        listRemovable: (forMs) => Promise.resolve(forMs === QUIET_MS ? [...left.keys()] : []),
        endRemoval: (id) => Promise.resolve(void left.delete(id)),
      },
      documents: { removeSome },
      ...overrides,
    });
  }

  function removeSome(companyId: string, limit: number): Promise<number> {
    const before = left.get(companyId) ?? 0;
    const removed = Math.min(before, limit);
    steps.push(`${companyId} ${removed}`);
    left.set(companyId, before - removed);
    return Promise.resolve(removed);
  }

  describe('a company that is being removed', () => {
    test('goes in steps, and itself in the round that finds nothing else', async () => {
      const { tick } = removals('a');
      await tick();
      expect(steps).toEqual(['comp_1 1000', 'comp_1 500', 'comp_1 0']);
      expect([...left]).toEqual([['comp_1', 0]]);
      left.set('comp_1', 1);
      await tick();
      expect(left.has('comp_1')).toBe(true);
      await tick();
      expect([left.size, leases.holders.size]).toEqual([0, 0]);
    });

    test('is left to the process that holds it', async () => {
      await leases.hold('company-removal/comp_1', 'b');
      await removals('a').tick();
      expect(steps).toEqual([]);
    });

    test('does not keep others from being removed when it fails, and is tried again', async () => {
      left.set('comp_2', 1);
      let failures = 1;
      const { tick } = removals('a', {
        documents: {
          removeSome: (id, limit) => {
            if (id === 'comp_1' && (failures -= 1) >= 0) return Promise.reject(new Error('away'));
            return removeSome(id, limit);
          },
        },
      });
      await tick();
      expect([...left]).toEqual([
        ['comp_1', 1_500],
        ['comp_2', 0],
      ]);
      await tick();
      await tick();
      expect(left.size).toBe(0);
    });

    test('is continued by the next process when this one stops', async () => {
      const first = removals('a', {
        documents: {
          async removeSome(id, limit) {
            const removed = await removeSome(id, limit);
            void first.stop();
            return removed;
          },
        },
      });
      await first.tick();
      expect(left.get('comp_1')).toBe(500);
      leases.holders.clear();
      const second = removals('b');
      await second.tick();
      await second.tick();
      expect(left.size).toBe(0);
    });
  });
});
