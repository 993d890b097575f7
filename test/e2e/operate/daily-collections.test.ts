import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import { DAY_KINDS } from '@posthorn/platform/mongo/days/days.ts';
import { dataOf, expectFailure } from '../../support/api/expect-answers.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

/** Longer than the processes need to notice, who ask every five seconds. */
const AHEAD_MS = 12_000;

/** An earlier installation whose days begin while it works. */
describe('Messages and deliveries while days begin', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;
  let make: Resources;
  let webhookId: string;
  let lastKey: string;
  /** Accepted before that was decided, before days began, and afterwards. */
  let old: ShownMessage, last: ShownMessage, first: ShownMessage;
  /** Failed before days began; its retries are made afterwards. */
  let retried: ShownMessage;

  beforeAll(async () => {
    const settings = { RETRY_DELAYS: '20s', CIRCUIT_RESET_MS: '100' };
    posthorn = await startPosthorn(settings, {}, { isOfBefore: true });
    receiver = await startReceiver();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    make = createResources(posthorn.api);
    ({ id: webhookId } = await make.webhook({ url: receiver.url }));
    expect(mongo.db.days.areDecided()).toBe(false);
    old = await post('old');
    await make.deliveryOnce('delivered', deliveryOf(old));
    receiver.answerWith(failing(1));
    retried = await make.message({ webhookId });
    await eventually('the first failure', async () => {
      return (await make.delivery(deliveryOf(retried))).attemptCount === 1;
    });
    receiver.answerWith(failing(0));
    const beginAt = new Date(Date.now() + AHEAD_MS);
    await collection(mongo.db, 'layout').updateOne({ _id: 'days' }, { $set: { beginAt } });
    await eventually('the claim of a key', async () => {
      lastKey = `last ${Date.now()}`;
      last = await post(lastKey);
      return (await collection(mongo.db, 'idempotencyKeys').countDocuments({})) > 0;
    });
    await mongo.readLayout();
    await eventually(
      'a message that is stored in its day',
      async () => {
        first = await make.message({ webhookId });
        return mongo.db.days.messages.of(first.id).dbName !== mongo.db.databaseName;
      },
      30_000,
    );
  }, 180_000);

  afterAll(async () => {
    await posthorn.stop();
    await receiver.close();
    await mongo.close();
  }, 60_000);

  const deliveryOf = ({ deliveries: [delivery] }: ShownMessage): string => String(delivery?.id);

  async function post(key: string, payload: object = { n: 1 }): Promise<ShownMessage> {
    const headers = { 'idempotency-key': key };
    return dataOf(
      await posthorn.api.post('/webhook-messages', { webhookId, payload }, headers),
      202,
    );
  }

  it('are each in one place, which their id says', async () => {
    for (const { id } of [old, last, retried]) {
      expect(await collection(mongo.db, 'messages').countDocuments({ _id: id })).toBe(1);
    }
    const { messages } = mongo.db.days;
    expect(await collection(mongo.db, 'messages').countDocuments({ _id: first.id })).toBe(0);
    expect(await messages.of(first.id).countDocuments({ _id: first.id })).toBe(1);
  });

  it('are delivered once each, and shown by the API in one list', async () => {
    for (const message of [old, last, first]) {
      await make.deliveryOnce('delivered', deliveryOf(message));
      expect(receiver.of(message.id)).toHaveLength(1);
    }
    const list = dataOf<ShownMessage[]>(
      await posthorn.api.get(`/api/v1/webhook-messages?webhookId=${webhookId}&limit=100`),
    );
    const ids = list.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort().reverse());
    expect(ids).toEqual(expect.arrayContaining([first.id, last.id, retried.id, old.id]));
  });

  it('from before are retried where they are', async () => {
    const { attemptCount } = await eventually(
      'the retry',
      async () => {
        const shown = await make.delivery(deliveryOf(retried));
        return shown.status === 'delivered' ? shown : null;
      },
      60_000,
    );
    expect(attemptCount).toBe(2);
    expect(receiver.of(retried.id)).toHaveLength(2);
  }, 90_000);

  it('keep their idempotency keys, also the earlier ones', async () => {
    expect((await post('old')).id).toBe(old.id);
    expect((await post(lastKey)).id).toBe(last.id);
    const begun = await post('begun');
    expect((await post('begun')).id).toBe(begun.id);
    const other = { webhookId, payload: { n: 2 } };
    for (const key of ['old', lastKey, 'begun']) {
      const answer = await posthorn.api.post('/webhook-messages', other, {
        'idempotency-key': key,
      });
      expectFailure(answer, 422, 'idempotency_key_reused');
    }
  });

  it('are exhausted, listed as failed and sent again', async () => {
    receiver.answerWith(failing(2));
    const { id, deliveries } = await make.message({ webhookId });
    const deliveryId = String(deliveries[0]?.id);
    await eventually(
      'the end of the schedule',
      async () => (await make.delivery(deliveryId)).status === 'exhausted',
      60_000,
    );
    const failed = dataOf<ShownMessage[]>(
      await posthorn.api.get('/api/v1/webhook-messages?status=exhausted'),
    );
    expect(failed.map((message) => message.id)).toEqual([id]);
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${deliveryId}/resend`, {}));
    await make.deliveryOnce('delivered', deliveryId);
    const health = await posthorn.api.get(`/api/v1/webhooks/${webhookId}/health`);
    expect(dataOf(health)).toMatchObject({});
  }, 120_000);

  it('have collections with zstd and indexes for the next days', async () => {
    const days = createDayCollections(mongo.db);
    await posthorn.start('retry');
    for (const kind of DAY_KINDS) {
      await eventually('the next days', async () => (await days.list(kind)).length >= 4, 90_000);
    }
    const { client, databaseName } = mongo.db;
    const database = client.db(`${databaseName}_messages`);
    const newest = (await database.listCollections().toArray())
      .map(({ name }) => name)
      .sort()
      .at(-1);
    const documents = database.collection(newest ?? '');
    const [stats] = await documents
      .aggregate<{ storageStats: { wiredTiger: { creationString: string } } }>([
        { $collStats: { storageStats: {} } },
      ])
      .toArray();
    expect(stats?.storageStats.wiredTiger.creationString).toContain('block_compressor=zstd');
    expect((await documents.indexes()).length).toBe(5);
  }, 120_000);
});
