import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { beginningOf, HOUR_MS, noAttempts } from '@posthorn/domain/stats.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import {
  createStatsStore,
  type StatsStore,
} from '@posthorn/platform/mongo/messages/stats-documents.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { eventually } from '../../support/time/eventually.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const DAYS_AGO = new Date(Date.now() - 72 * HOUR_MS);

/** Three days of an endpoint that fails are written to the store: the retry service finds them at its start. */
describe('A webhook whose endpoint fails for days', () => {
  let posthorn: Posthorn;
  let operator: Receiver;
  let mongo: MongoConnection;

  beforeAll(async () => {
    operator = await startReceiver();
    posthorn = await startPosthorn({ RETRY_DELAYS: '50ms' });
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  }, 120_000);

  afterAll(async () => {
    await posthorn.stop();
    await Promise.all([operator.close(), mongo.close()]);
  }, 60_000);

  const typesOf = (webhookId: string): string[] =>
    operator.received
      .map(({ body }) => JSON.parse(String(body)) as { type: string; data: { webhookId: string } })
      .filter(({ data }) => data.webhookId === webhookId)
      .map(({ type }) => type);

  /** A webhook with three days of attempts, each hour with this outcome. */
  async function withHistory(store: StatsStore, outcome: 'success' | 'timeout'): Promise<string> {
    const { companyId, api } = posthorn;
    const { webhookId } = await api.createTarget('http://127.0.0.1:9');
    const thisHourMs = beginningOf('hour', Date.now());
    const hours = Array.from({ length: 72 }, (_, n) => thisHourMs - n * HOUR_MS);
    const counts = { ...noAttempts(), outcomes: { [outcome]: 3 } };
    const ids = { kind: 'webhook', ownerId: webhookId, companyId } as const;
    await store.addMinutes(hours.map((minuteMs) => ({ ...ids, minuteMs, counts })));
    if (outcome === 'timeout') {
      await insertFailedDeliveries(mongo.db, { companyId, webhookId }, 3);
    }
    // Otherwise its history would count as that of another version.
    await webhooks().updateOne({ _id: webhookId }, { $set: { updatedAt: DAYS_AGO } });
    return webhookId;
  }

  const webhooks = () => collection(mongo.db, 'webhooks');

  it('is told to the operator, and disabled a day after the warning', async () => {
    const store = createStatsStore(mongo.db);
    await withHistory(store, 'success');
    const [failing, warned] = [
      await withHistory(store, 'timeout'),
      await withHistory(store, 'timeout'),
    ];
    const since = new Date(beginningOf('hour', Date.now()) - 70 * HOUR_MS);
    const disableAt = new Date(Date.now() - 3 * HOUR_MS);
    await webhooks().updateOne({ _id: warned }, { $set: { failing: { since, disableAt } } });
    await posthorn.start('retry', {
      AUTO_DISABLE_AFTER: '48h',
      OPERATOR_WEBHOOK_URL: `${operator.url}/events`,
      OPERATOR_WEBHOOK_SECRET: SECRET,
    });
    await eventually('the events of both', () => {
      return typesOf(failing).length > 0 && typesOf(warned).includes('endpoint.disabled');
    });
    expect([typesOf(failing), typesOf(warned)]).toEqual([
      ['endpoint.failing'],
      ['endpoint.disabled'],
    ]);
    const [event] = await readAuditEvents(posthorn.api, { actor: 'system' });
    expect(event).toMatchObject({
      action: 'webhook.updated',
      actor: { kind: 'system' },
      target: { kind: 'webhook', id: warned },
      outcome: 'done',
      changes: [{ field: 'disabled', before: false, after: true }],
    });
  });

  it('gets no message until its owner enables it again', async () => {
    const disabled = await webhooks().findOne({ disabled: true });
    const { deliveryId } = await posthorn.api.send({ webhookId: disabled?._id }, { n: 1 });
    const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
    expect(body.data).toMatchObject({ status: 'cancelled', reason: 'webhook_disabled' });
  });
});
