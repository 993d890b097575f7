import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { Removal, RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';

export interface OpenRemovals {
  removals: RemovalStore;
  /** Removes everything, and stores the tree again. */
  plant: (tree: RemovalTree) => Promise<void>;
  addDelivery: (id: string, webhookId: string, status: DeliveryStatus) => Promise<void>;
  /** The ids of the pending deliveries, sorted. */
  pendingIds: () => Promise<string[]>;
  close: () => Promise<void>;
}

/** Projects, apps and webhooks of the company comp_a. */
export interface RemovalTree {
  projects: readonly string[];
  apps: readonly { id: string; projectId: string }[];
  webhooks: readonly { id: string; projectId: string; appId: string | null }[];
}

const [FIRST, SECOND, GLOBAL, OTHER] = ['wh_1', 'wh_2', 'wh_3', 'wh_4'] as const;

/** The first of two projects has two apps with a webhook each, and a global webhook. */
const TREE: RemovalTree = {
  projects: ['proj_1', 'proj_2'],
  apps: [
    { id: 'app_1', projectId: 'proj_1' },
    { id: 'app_2', projectId: 'proj_1' },
    { id: 'app_3', projectId: 'proj_2' },
  ],
  webhooks: [
    { id: FIRST, projectId: 'proj_1', appId: 'app_1' },
    { id: SECOND, projectId: 'proj_1', appId: 'app_2' },
    { id: GLOBAL, projectId: 'proj_1', appId: null },
    { id: OTHER, projectId: 'proj_2', appId: 'app_3' },
  ],
};

const removal = (kind: Removal['kind'], rootId: string, companyId = 'comp_a'): Removal => ({
  id: `rmv_${rootId}`,
  companyId,
  kind,
  rootId,
});

const PROJECT = removal('project', 'proj_1');
const APP = removal('app', 'app_1');
const WEBHOOK = removal('webhook', FIRST);

/** What every RemovalStore does. */
export function removalContract(open: () => Promise<OpenRemovals>): void {
  let opened: OpenRemovals;
  let removals: RemovalStore;

  beforeAll(async () => {
    opened = await open();
    ({ removals } = opened);
  });

  beforeEach(() => opened.plant(TREE));

  afterAll(() => opened.close());

  describe('a removal', () => {
    it('is claimed until it is finished', async () => {
      await removals.insert(PROJECT);
      await removals.insert(APP);
      const claim = (nowMs: number) =>
        removals.claim({ claim: 'c1', nowMs, untilMs: nowMs + 100, exceptCompanyIds: [] });
      const claimed = [await claim(1), await claim(1)];
      expect(new Set(claimed.map((each) => each?.id))).toEqual(new Set([PROJECT.id, APP.id]));
      expect(await claim(1)).toBeNull();
      await removals.finish(APP);
      await removals.finish(APP);
      expect([await removals.isRunning(APP), await removals.isRunning(PROJECT)]).toEqual([
        false,
        true,
      ]);
      expect([await claim(200), await claim(200)]).toEqual([{ ...PROJECT, claim: 'c1' }, null]);
    });

    it.each([PROJECT, APP, WEBHOOK])('removes its root once: %j', async (each) => {
      expect(await removals.hasRoot(each)).toBe(true);
      expect(await removals.removeRoot(each)).toBe(true);
      expect(await removals.hasRoot(each)).toBe(false);
      expect(await removals.removeRoot(each)).toBe(false);
    });

    it('finds the apps and webhooks under a project, also the global webhooks', async () => {
      expect((await removals.appsUnder(PROJECT, 9)).sort()).toEqual(['app_1', 'app_2']);
      expect((await removals.webhooksUnder(PROJECT, 9)).sort()).toEqual([FIRST, SECOND, GLOBAL]);
      expect(await removals.webhooksUnder(PROJECT, 2)).toHaveLength(2);
      expect(await removals.appsUnder(PROJECT, 1)).toHaveLength(1);
    });

    it('finds the webhooks under an app, and nothing under a webhook', async () => {
      expect(await removals.appsUnder(APP, 9)).toEqual([]);
      expect(await removals.webhooksUnder(APP, 9)).toEqual([FIRST]);
      expect(await removals.appsUnder(WEBHOOK, 9)).toEqual([]);
      expect(await removals.webhooksUnder(WEBHOOK, 9)).toEqual([]);
    });

    it('removes the apps and webhooks that it is given', async () => {
      await removals.removeApps('comp_a', ['app_1', 'app_2']);
      await removals.removeWebhooks('comp_a', [FIRST, GLOBAL]);
      expect(await removals.appsUnder(PROJECT, 9)).toEqual([]);
      expect(await removals.webhooksUnder(PROJECT, 9)).toEqual([SECOND]);
    });

    it('of another company finds and removes nothing', async () => {
      for (const { kind, rootId } of [PROJECT, APP, WEBHOOK]) {
        const foreign = removal(kind, rootId, 'comp_b');
        expect(await removals.hasRoot(foreign)).toBe(false);
        expect(await removals.removeRoot(foreign)).toBe(false);
        expect(await removals.appsUnder(foreign, 9)).toEqual([]);
        expect(await removals.webhooksUnder(foreign, 9)).toEqual([]);
      }
      await removals.removeApps('comp_b', ['app_1']);
      await removals.removeWebhooks('comp_b', [FIRST]);
      expect(await removals.appsUnder(PROJECT, 9)).toHaveLength(2);
      expect(await removals.webhooksUnder(PROJECT, 9)).toHaveLength(3);
    });
  });

  describe('the pending deliveries of removed webhooks', () => {
    it('are cancelled in steps', async () => {
      await opened.addDelivery('dlv_1', FIRST, 'pending');
      await opened.addDelivery('dlv_2', FIRST, 'pending');
      await opened.addDelivery('dlv_3', SECOND, 'pending');
      const step = { limit: 2, atMs: 9 };
      const both = [FIRST, SECOND];
      expect(await removals.cancelPending('comp_a', both, step)).toBe(2);
      expect(await opened.pendingIds()).toHaveLength(1);
      expect(await removals.cancelPending('comp_a', both, step)).toBe(1);
      expect(await removals.cancelPending('comp_a', both, step)).toBe(0);
      expect(await opened.pendingIds()).toEqual([]);
    });

    it('are the only ones that are cancelled', async () => {
      const finals = ['delivered', 'exhausted', 'cancelled'] as const;
      for (const status of finals) await opened.addDelivery(`dlv_${status}`, FIRST, status);
      await opened.addDelivery('dlv_other', OTHER, 'pending');
      const step = { limit: 9, atMs: 9 };
      expect(await removals.cancelPending('comp_a', [FIRST], step)).toBe(0);
      expect(await removals.cancelPending('comp_b', [OTHER], step)).toBe(0);
      expect(await opened.pendingIds()).toEqual(['dlv_other']);
    });
  });
}
