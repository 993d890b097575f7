import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../vault/vault.ts';
import { collection } from './collections.ts';
import { createRemovalStore, type Removal, type RemovalStore } from './removals.ts';
import { createWebhookStore } from './webhooks/webhooks.ts';

const [FIRST, SECOND, GLOBAL, OTHER] = [1, 2, 3, 4].map((n) => sampleWebhook(n).id) as [
  ...[string, string, string, string],
];
const TIMES = { createdAt: new Date(1), updatedAt: new Date(1) };

let database: ScratchDatabase;
let removals: RemovalStore;

const removal = (kind: Removal['kind'], rootId: string, companyId = 'comp_a'): Removal => ({
  _id: `rmv_${rootId}`,
  companyId,
  kind,
  rootId,
});

const PROJECT = removal('project', 'proj_1');
const APP = removal('app', 'app_1');
const WEBHOOK = removal('webhook', FIRST);

beforeAll(async () => {
  database = await openScratchDatabase();
  removals = createRemovalStore(database.db);
});

beforeEach(async () => {
  const { db } = database;
  for (const name of ['projects', 'apps', 'webhooks', 'deliveries', 'removals'] as const) {
    await collection(db, name).deleteMany({});
  }
  const texts = { companyId: 'comp_a', name: 'N', description: '' };
  const environment = 'development' as const;
  await collection(db, 'projects').insertOne({ _id: 'proj_1', ...texts, environment, ...TIMES });
  for (const [_id, projectId] of [
    ['app_1', 'proj_1'],
    ['app_2', 'proj_1'],
    ['app_3', 'proj_2'],
  ] as const) {
    await collection(db, 'apps').insertOne({ _id, projectId, ...texts, environment, ...TIMES });
  }
  const webhooks = createWebhookStore(db, createVault([randomKey('k1')]));
  await webhooks.insert(sampleWebhook(1, { appId: 'app_1' }));
  await webhooks.insert(sampleWebhook(2, { appId: 'app_2' }));
  await webhooks.insert(sampleWebhook(3, { appId: null, environmentId: 'live' }));
  await webhooks.insert(sampleWebhook(4, { appId: 'app_3', projectId: 'proj_2' }));
});

afterAll(() => database.drop());

describe('a removal in the store', () => {
  it('stays listed from its note to its end', async () => {
    await removals.insert(PROJECT);
    await removals.insert(APP);
    expect(await removals.list('', 9)).toEqual([APP, PROJECT]);
    expect(await removals.list('', 1)).toEqual([APP]);
    expect(await removals.list(APP._id, 9)).toEqual([PROJECT]);
    await removals.finish(APP);
    await removals.finish(APP);
    expect(await removals.list('', 9)).toEqual([PROJECT]);
  });

  it.each([PROJECT, APP, WEBHOOK])('removes its root once: %j', async (each) => {
    expect(await removals.hasRoot(each)).toBe(true);
    expect(await removals.removeRoot(each)).toBe(true);
    expect(await removals.hasRoot(each)).toBe(false);
    expect(await removals.removeRoot(each)).toBe(false);
  });

  it('finds what lies under a project: its apps and every webhook, the global ones too', async () => {
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

  it('removes the apps and webhooks that it names', async () => {
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

describe('the pending deliveries of webhooks that are removed', () => {
  const deliveries = () => collection(database.db, 'deliveries');

  async function store(
    _id: string,
    webhookId: string,
    status: DeliveryStatus,
    companyId = 'comp_a',
  ) {
    await deliveries().insertOne({
      _id,
      messageId: `msg_${_id}`,
      webhookId,
      companyId,
      appId: null,
      status,
      reason: null,
      attemptCount: 1,
      attempts: [],
      nextAttemptAt: new Date(5),
      ...TIMES,
    });
  }

  const cancelled = async () =>
    (await deliveries().find({ reason: 'webhook_deleted' }).sort({ _id: 1 }).toArray()).map(
      ({ _id }) => _id,
    );

  it('are cancelled in steps, with the reason', async () => {
    for (const n of [1, 2, 3]) await store(`dlv_${n}`, n === 3 ? SECOND : FIRST, 'pending');
    const step = { limit: 2, atMs: 9 };
    const both = [FIRST, SECOND];
    expect(await removals.cancelPending('comp_a', both, step)).toBe(2);
    expect(await removals.cancelPending('comp_a', both, step)).toBe(1);
    expect(await removals.cancelPending('comp_a', both, step)).toBe(0);
    expect(await deliveries().findOne({ _id: 'dlv_1' })).toMatchObject({
      status: 'cancelled',
      nextAttemptAt: null,
      updatedAt: new Date(9),
      attemptCount: 1,
    });
    expect(await cancelled()).toEqual(['dlv_1', 'dlv_2', 'dlv_3']);
  });

  it('alone are touched: not final ones, not those of other webhooks or companies', async () => {
    const finals = ['delivered', 'exhausted', 'cancelled'] as const;
    for (const [n, status] of finals.entries()) await store(`dlv_${n}`, FIRST, status);
    await store('dlv_other', OTHER, 'pending');
    await store('dlv_foreign', FIRST, 'pending', 'comp_b');
    expect(await removals.cancelPending('comp_a', [FIRST], { limit: 9, atMs: 9 })).toBe(0);
    expect(await cancelled()).toEqual([]);
  });
});
