import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { eventually } from '../../support/time/eventually.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { countIn, insertIn } from '../../support/stores/stored-documents.ts';

/** Removed in pieces; a company may have more, which only takes longer. */
const WEBHOOKS = 30_000;
const PENDING = 5_000;

describe('A project with tens of thousands of webhooks', () => {
  let posthorn: Posthorn;
  let mongo: MongoConnection;

  beforeAll(async () => {
    posthorn = await startPosthorn();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await posthorn.stop();
  }, 60_000);

  const webhooks = () => collection(mongo.db, 'webhooks');

  /** Inserts copies of a webhook that the API made; only their owners matter here. */
  async function fill(webhookId: string, appId: string): Promise<void> {
    const made = await webhooks().findOne({ _id: webhookId });
    if (!made) throw new Error('the webhook is not stored');
    for (let from = 0; from < WEBHOOKS - 1; from += 5_000) {
      const size = Math.min(5_000, WEBHOOKS - 1 - from);
      const copies = Array.from({ length: size }, (_, i) => ({ ...made, _id: idOf(from + i) }));
      await webhooks().insertMany(copies, { ordered: false });
    }
    const now = new Date();
    const waiting = Array.from({ length: PENDING }, (_, i) => ({
      ...idsOf(idOf(i % 700)),
      companyId: posthorn.companyId,
      appId,
      status: 'pending' as const,
      reason: null,
      attemptCount: 1,
      attempts: [],
      nextAttemptAt: now,
      createdAt: now,
      updatedAt: now,
    }));
    await insertIn(mongo.db.days.deliveries, waiting);
  }

  const idOf = (n: number): string => `wh_${String(n).padStart(26, '0')}`;

  function idsOf(webhookId: string) {
    const messageId = systemIds('msg');
    return { _id: deliveryIdOf(messageId, webhookId), messageId, webhookId };
  }

  it('is deleted with all of them, also when the gateway is killed in the middle', async () => {
    const { api } = posthorn;
    const { appId, webhookId, projectId } = await api.createTarget('http://127.0.0.1:9/hook');
    await fill(webhookId, appId);

    const address = `/api/v1/projects/${projectId}`;
    const answer = api.request('DELETE', address).catch(() => null);
    await eventually('a removal that has begun', async () => {
      const left = await webhooks().countDocuments({ projectId });
      return left > 0 && left < WEBHOOKS * 0.9;
    });
    expect((await api.get(address)).status).toBe(404);
    await killHard(posthorn.gateway);
    await answer;
    const left = await webhooks().countDocuments({ projectId });
    expect(left).toBeGreaterThan(0);

    await posthorn.start('gateway');
    await eventually(
      'every webhook is gone',
      async () => (await webhooks().countDocuments({ projectId })) === 0,
      90_000,
    );
    await eventually(
      'the end of the removal',
      async () => (await collection(mongo.db, 'removals').countDocuments({})) === 0,
    );
    expect(await collection(mongo.db, 'apps').countDocuments({ projectId })).toBe(0);
    const { deliveries } = mongo.db.days;
    expect(await countIn(deliveries, { status: 'pending' })).toBe(0);
    const cancelled = { status: 'cancelled', reason: 'webhook_deleted' } as const;
    expect(await countIn(deliveries, cancelled)).toBe(PENDING);
    expect((await api.request('DELETE', address)).status).toBe(404);
  }, 240_000);
});
