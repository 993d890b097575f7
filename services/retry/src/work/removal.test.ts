import { beforeEach, describe, expect, test } from '@jest/globals';
import { setImmediate as untilSettled } from 'node:timers/promises';
import type { Removal, RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import {
  createSampleTree,
  type MemoryRemovals,
  remainingIn,
  WITHOUT_THE_FIRST_PROJECT,
} from '../../../../test/support/memory/memory-removals.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { interruptAt, type Moment } from '../../../../test/support/process/interrupt-at.ts';
import { createRemovals, type RemovalsDeps } from './removal.ts';

const COMPANY_ID = 'comp_a';
const PROJECT: Removal = { id: 'rmv_1', companyId: COMPANY_ID, kind: 'project', rootId: 'proj_1' };
const APP: Removal = { id: 'rmv_1', companyId: COMPANY_ID, kind: 'app', rootId: 'app_1' };
const WEBHOOK: Removal = { id: 'rmv_1', companyId: COMPANY_ID, kind: 'webhook', rootId: 'wh_1' };
const LONG_MS = 60_000;

let tree: MemoryRemovals;
/** Ids of the announced invalidations, in order. */
let forgotten: string[];
let nowMs: number;
let claims = 0;

beforeEach(() => {
  [tree, forgotten, nowMs] = [createSampleTree(), [], 1];
});

function worker(overrides: Partial<RemovalsDeps> = {}): ClaimedWork {
  return createRemovals({
    removals: tree.store,
    invalidate(...changed) {
      forgotten.push(...changed.map(({ id }) => id));
      return Promise.resolve();
    },
    newClaim: () => `claim-${(claims += 1)}`,
    nowMs: () => nowMs,
    // No claim is renewed.
    sleep: () => new Promise(() => undefined),
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

async function work({ tick, idle }: ClaimedWork): Promise<void> {
  await tick();
  await idle();
}

async function remove(removal: Removal, overrides: Partial<RemovalsDeps> = {}): Promise<void> {
  await tree.store.insert(removal);
  await work(worker(overrides));
}

describe('a removal', () => {
  test('of a project removes its apps, their webhooks and its global ones, and nothing else', async () => {
    await remove(PROJECT);
    expect(remainingIn(tree)).toEqual(WITHOUT_THE_FIRST_PROJECT);
    // By their ids: what is cached of other companies stays.
    expect(forgotten.sort()).toEqual(['app_1', 'app_2', 'proj_1', 'wh_1', 'wh_2', 'wh_global']);
  });

  test('of an app removes its webhooks', async () => {
    await remove(APP);
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
    await remove(WEBHOOK);
    expect(remainingIn(tree)).toMatchObject({
      webhooks: ['wh_2', 'wh_3', 'wh_global'],
      pending: ['wh_2', 'wh_3', 'wh_global'],
      apps: ['app_1', 'app_2', 'app_3'],
      notes: 0,
    });
  });

  test('removes 4,500 webhooks in steps of 1,000', async () => {
    tree.webhooks.clear();
    for (let n = 0; n < 4_500; n += 1) tree.webhooks.set(`wh_${n}`, { projectId: 'proj_1' });
    const sizes: number[] = [];
    const removeWebhooks: RemovalStore['removeWebhooks'] = (companyId, ids) => {
      sizes.push(ids.length);
      return tree.store.removeWebhooks(companyId, ids);
    };
    await remove(PROJECT, { removals: { ...tree.store, removeWebhooks } });
    expect(sizes).toEqual([1_000, 1_000, 1_000, 1_000, 500]);
    expect(tree.webhooks.size).toBe(0);
  });

  test('cancels deliveries before it removes their webhooks', async () => {
    const steps: string[] = [];
    const named = new Proxy(tree.store, {
      get: (store, name: keyof RemovalStore) => {
        steps.push(name);
        return store[name];
      },
    });
    await remove(APP, { removals: named });
    const changes = steps.filter((name) => !/^claim$|Under$/.test(name));
    expect(changes).toEqual([
      'removeRoot',
      'removeCatalogue',
      'cancelPending',
      'removeWebhooks',
      'finish',
    ]);
  });

  test.each<Moment>(['before', 'after'])(
    'whose process ends is finished by another one: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        tree = createSampleTree();
        const { wrap, wasReached } = interruptAt(nth, moment);
        await remove(PROJECT, { removals: wrap(tree.store) });
        nowMs += LONG_MS;
        await work(worker());
        expect(remainingIn(tree)).toEqual(WITHOUT_THE_FIRST_PROJECT);
        if (!wasReached()) break;
        expect(nth).toBeLessThan(50);
      }
    },
  );

  test('with much to remove makes room for the others of its company', async () => {
    const removeOf = (nth: number): Removal => ({
      ...WEBHOOK,
      id: `rmv_${nth}`,
      rootId: `wh_${nth}`,
    });
    for (let nth = 0; nth <= 10; nth += 1) await tree.store.insert(removeOf(nth));
    const cancelPending: RemovalStore['cancelPending'] = async (_companyId, ids) => {
      nowMs += 100;
      await untilSettled();
      return ids.includes('wh_10') ? 0 : 1_000;
    };
    const busy = worker({ removals: { ...tree.store, cancelPending } });
    await busy.tick();
    await eventually('the last one', () => !tree.notes.has('rmv_10'));
    await busy.stop();
    expect(tree.notes.size).toBe(10);
  });

  test('is left for another process when this one stops', async () => {
    let unblock: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => (unblock = resolve));
    const removeRoot: RemovalStore['removeRoot'] = async (removal) => {
      await blocked;
      return tree.store.removeRoot(removal);
    };
    await tree.store.insert(APP);
    const first = worker({ removals: { ...tree.store, removeRoot } });
    await first.tick();
    const stopped = first.stop();
    unblock();
    await stopped;
    expect([tree.notes.size, tree.webhooks.has('wh_1')]).toEqual([1, true]);
    await work(worker());
    expect(remainingIn(tree)).toMatchObject({ apps: ['app_2', 'app_3'], notes: 0 });
  });
});
