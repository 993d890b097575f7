import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { removalContract } from '../../../../../test/support/contract/removal-contract.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { OWNED_COLLECTIONS } from '../company-documents.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createSequenceStore } from '../messages/sequences.ts';
import { createWebhookStore } from '../webhooks/webhooks.ts';
import { type CompanyRemoval, createCompanyRemoval, createRemovalStore } from './removals.ts';

describe('removals', () => {
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

  const database = duringTests(openScratchDatabase, ({ drop }) => drop());

  it('the ordering keys of removed webhooks are removed in steps, and no others', async () => {
    const sequences = createSequenceStore(database.db);
    const places = [
      ...[1, 2, 3].map((n) => ({ companyId: 'comp_a', webhookId: 'wh_1', orderingKey: `${n}` })),
      { companyId: 'comp_a', webhookId: 'wh_2', orderingKey: '1' },
      { companyId: 'comp_b', webhookId: 'wh_1', orderingKey: '1 of another company' },
    ];
    const head = { deliveryId: 'dlv_1', messageId: 'msg_1', position: 1 };
    await sequences.setHeads(
      places.map((place) => ({ ...place, head })),
      9,
    );
    const { cancelPending } = createRemovalStore(database.db);
    const step = { limit: 2, atMs: 9 };
    expect(await cancelPending('comp_a', ['wh_1'], step)).toBe(2);
    expect(await cancelPending('comp_a', ['wh_1'], step)).toBe(1);
    expect(await cancelPending('comp_a', ['wh_1'], step)).toBe(0);
    const left = await collection(database.db, 'sequences').find({}).toArray();
    expect(left.map(({ companyId, webhookId }) => `${companyId}/${webhookId}`).sort()).toEqual([
      'comp_a/wh_2',
      'comp_b/wh_1',
    ]);
  });

  it('a delivery of a removed webhook is cancelled with its reason, and one of another company is not', async () => {
    const deliveries = collection(database.db, 'deliveries');
    await deliveries.insertMany([
      delivery('dlv_1', {}),
      delivery('dlv_2', { companyId: 'comp_b' }),
    ]);
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
});

describe('company removal', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let removal: CompanyRemoval;

  beforeAll(() => {
    removal = createCompanyRemoval(database.db);
  });

  const UPSERT = { upsert: true };
  const documents = (name: string) => database.db.collection<{ _id: string }>(name);

  /** One document in each collection, and messages whose deliveries have every status. */
  async function plant(companyId: string): Promise<void> {
    for (const name of OWNED_COLLECTIONS) {
      const _id = name === 'idempotencyKeys' ? `${companyId}/order-17` : `${name} of ${companyId}`;
      await documents(name).insertOne({
        _id,
        companyId,
        hash: _id,
        targets: [],
      } as object as never);
    }
    for (const [n, keys] of database.db.days.idempotencyKeys.all().entries()) {
      const _id = `${companyId}/order-${n}`;
      await keys.replaceOne(
        { _id },
        { companyId, messageId: 'msg_1', createdAt: new Date() },
        UPSERT,
      );
    }
    const targets = ['wh_1', 'wh_2'];
    for (const [n, status] of ['delivered', 'pending', 'exhausted', 'cancelled'].entries()) {
      const messageId = `msg_${n}_${companyId}`;
      await documents('messages').insertOne({ _id: messageId, companyId, targets } as never);
      for (const webhookId of targets) {
        const _id = deliveryIdOf(messageId, webhookId);
        await documents('deliveries').insertOne({ _id, companyId, messageId, status } as never);
      }
    }
    // Its message has expired.
    const orphan = { _id: `dlv_${companyId}`, companyId, messageId: 'msg_9', status: 'exhausted' };
    await documents('deliveries').insertOne(orphan);
  }

  /** How many documents of the company each collection of the database has; only those that have some. */
  async function countBy(companyId: string): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { name } of await database.db.listCollections().toArray()) {
      const all = await documents(name).find({}).toArray();
      const own = all.filter((each) => JSON.stringify(each).includes(companyId));
      if (own.length > 0) counts[name] = own.length;
    }
    return counts;
  }

  async function removeAll(limit: number): Promise<number[]> {
    const steps: number[] = [];
    for (;;) {
      const removed = await removal.removeSome('comp_a', limit);
      if (removed === 0) return steps;
      steps.push(removed);
    }
  }

  describe('the removal of a company', () => {
    beforeEach(async () => {
      for (const name of OWNED_COLLECTIONS) await documents(name).deleteMany({});
      await plant('comp_a');
      await plant('comp_b');
    });

    it('leaves nothing of it in any collection of the database, and everything of another one', async () => {
      const before = await countBy('comp_b');
      // The delivery without a status is in no index, as no other one is.
      await documents('deliveries').deleteOne({ _id: 'deliveries of comp_a' });
      expect(Object.keys(await countBy('comp_a')).sort()).toEqual([...OWNED_COLLECTIONS].sort());
      await removeAll(1_000);
      expect(await countBy('comp_a')).toEqual({});
      expect(await countBy('comp_b')).toEqual(before);
    });

    it('takes steps of bounded size, and one that is repeated finds the rest', async () => {
      await documents('deliveries').deleteOne({ _id: 'deliveries of comp_a' });
      const steps = await removeAll(2);
      // A message with its two deliveries is removed at once.
      expect(Math.max(...steps)).toBe(4);
      expect(await countBy('comp_a')).toEqual({});
    });
  });
});
