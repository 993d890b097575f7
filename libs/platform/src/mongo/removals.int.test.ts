import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { removalContract } from '../../../../test/support/contract/removal-contract.ts';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../vault/vault.ts';
import { collection } from './documents/collections.ts';
import type { DeliveryDocument } from './documents/documents.ts';
import { createRemovalStore } from './removals.ts';
import { createWebhookStore } from './webhooks/webhooks.ts';

const TIMES = { createdAt: new Date(), updatedAt: new Date(1) };
const TEXTS = {
  companyId: 'comp_a',
  name: 'N',
  description: '',
  environment: 'development' as const,
};

function delivery(_id: string, changes: Partial<DeliveryDocument>): DeliveryDocument {
  return {
    _id,
    messageId: `msg_${_id}`,
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    status: 'pending',
    reason: null,
    attemptCount: 1,
    attempts: [],
    nextAttemptAt: new Date(5),
    ...TIMES,
    ...changes,
  };
}

removalContract(async () => {
  const { db, drop } = await openScratchDatabase();
  const webhooks = createWebhookStore(db, createVault([randomKey('k1')]));
  return {
    removals: createRemovalStore(db),
    async plant(tree) {
      for (const name of ['projects', 'apps', 'webhooks', 'deliveries', 'removals'] as const) {
        await collection(db, name).deleteMany({});
      }
      for (const _id of tree.projects) {
        await collection(db, 'projects').insertOne({ _id, ...TEXTS, ...TIMES });
      }
      for (const { id: _id, projectId } of tree.apps) {
        await collection(db, 'apps').insertOne({ _id, projectId, ...TEXTS, ...TIMES });
      }
      for (const { id, projectId, appId } of tree.webhooks) {
        await webhooks.insert(sampleWebhook(1, { id, projectId, appId }));
      }
    },
    async addDelivery(id, webhookId, status) {
      await collection(db, 'deliveries').insertOne(delivery(id, { webhookId, status }));
    },
    async pendingIds() {
      const found = collection(db, 'deliveries').find({ status: 'pending' }).sort({ _id: 1 });
      return (await found.toArray()).map(({ _id }) => _id);
    },
    close: drop,
  };
});

let database: ScratchDatabase;

beforeAll(async () => {
  database = await openScratchDatabase();
});

afterAll(() => database.drop());

it('a delivery of a removed webhook is cancelled with its reason, and one of another company is not', async () => {
  const deliveries = collection(database.db, 'deliveries');
  await deliveries.insertMany([delivery('dlv_1', {}), delivery('dlv_2', { companyId: 'comp_b' })]);
  const { cancelPending } = createRemovalStore(database.db);
  expect(await cancelPending('comp_a', ['wh_1'], { limit: 9, atMs: 9 })).toBe(1);
  expect(await deliveries.findOne({ _id: 'dlv_1' })).toMatchObject({
    status: 'cancelled',
    reason: 'webhook_deleted',
    nextAttemptAt: null,
    updatedAt: new Date(9),
    attemptCount: 1,
  });
  expect(await deliveries.findOne({ _id: 'dlv_2' })).toMatchObject({ status: 'pending' });
});
