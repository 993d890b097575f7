import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { beginningOf, HOUR_MS, noAttempts } from '@posthorn/domain/stats.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import {
  createStatsStore,
  type StatsStore,
} from '@posthorn/platform/mongo/messages/stats-documents.ts';
import { Webhook } from 'standardwebhooks';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { eventually } from '../../support/time/eventually.ts';

interface OperatorEvent {
  type: string;
  data: { companyId: string; webhookId: string; count: number; detail: string };
}

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const DAYS_AGO = new Date(Date.now() - 72 * HOUR_MS);

let posthorn: Posthorn;
let operator: Receiver;

beforeAll(async () => {
  operator = await startReceiver();
  posthorn = await startPosthorn({
    RETRY_DELAYS: '50ms',
    CIRCUIT_RESET_MS: '100',
    OPERATOR_WEBHOOK_URL: `${operator.url}/events`,
    OPERATOR_WEBHOOK_SECRET: SECRET,
  });
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
  await operator.close();
});

/** The events about a webhook that arrived, each with its signature verified. */
function eventsOf(webhookId: string): OperatorEvent[] {
  const events = operator.received.map(({ body, headers }) => {
    const verified = new Webhook(SECRET).verify(String(body), headers as Record<string, string>);
    return verified as OperatorEvent;
  });
  return events.filter(({ data }) => data.webhookId === webhookId);
}

const typesOf = (webhookId: string): string[] => eventsOf(webhookId).map(({ type }) => type);

describe('The operator', () => {
  it('gets one event for exhausted deliveries of an endpoint, and events of its circuit', async () => {
    const endpoint = await startReceiver();
    endpoint.answerWith(failing(99));
    const { webhookId } = await posthorn.api.createTarget(endpoint.url);
    for (let n = 0; n < 12; n += 1) await posthorn.api.send({ webhookId }, { n });
    await eventually('the events of failures', () => {
      const types = typesOf(webhookId);
      return types.includes('delivery.exhausted') && types.includes('circuit.opened');
    });
    endpoint.answerWith((response) => response.writeHead(200).end());
    await posthorn.api.send({ webhookId }, { n: 'recovered' });
    await eventually('the event of the closed circuit', () =>
      typesOf(webhookId).includes('circuit.closed'),
    );
    expect(typesOf(webhookId).sort()).toEqual([
      'circuit.closed',
      'circuit.opened',
      'delivery.exhausted',
    ]);
    const { companyId } = posthorn;
    for (const { data } of eventsOf(webhookId))
      expect(data).toMatchObject({ companyId, webhookId });
    await endpoint.close();
  });
});

/** Three days of an endpoint that fails are written to the store: the retry service finds them at its start. */
describe('A webhook whose endpoint fails for days', () => {
  let mongo: MongoConnection;

  beforeAll(async () => {
    await posthorn.retry.stop();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  });

  afterAll(() => mongo.close());

  /** A webhook with three days of attempts, each hour with this outcome. */
  async function withHistory(store: StatsStore, outcome: 'success' | 'timeout'): Promise<string> {
    const { companyId, api } = posthorn;
    const { webhookId } = await api.createTarget('http://127.0.0.1:9');
    const thisHourMs = beginningOf('hour', Date.now());
    const hours = Array.from({ length: 72 }, (_, n) => thisHourMs - n * HOUR_MS);
    const counts = { ...noAttempts(), outcomes: { [outcome]: 3 } };
    const ids = { kind: 'webhook', ownerId: webhookId, companyId } as const;
    const ofHour = (hourMs: number) => ({ ...ids, hourMs, minutes: new Map([[hourMs, counts]]) });
    await store.addHours(hours.map(ofHour), 1);
    if (outcome === 'timeout') {
      await insertFailedDeliveries(mongo.db, { companyId, webhookId }, 3);
    }
    // Otherwise its history would count as that of another version.
    await webhooks().updateOne({ _id: webhookId }, { $set: { updatedAt: DAYS_AGO } });
    return webhookId;
  }

  const webhooks = () => collection(mongo.db, 'webhooks');

  it('is reported to the operator, and disabled a day after the warning', async () => {
    const store = createStatsStore(mongo.db);
    await withHistory(store, 'success');
    const [failing, warned] = [
      await withHistory(store, 'timeout'),
      await withHistory(store, 'timeout'),
    ];
    const since = new Date(beginningOf('hour', Date.now()) - 70 * HOUR_MS);
    const disableAt = new Date(Date.now() - 3 * HOUR_MS);
    await webhooks().updateOne({ _id: warned }, { $set: { failing: { since, disableAt } } });
    await posthorn.start('retry', { AUTO_DISABLE_AFTER: '48h' });
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
      changes: [
        { field: 'disabled', before: false, after: true },
        { field: 'disabledReason', before: null, after: 'failing' },
      ],
    });
  });

  it('gets no message until its owner enables it again', async () => {
    const disabled = await webhooks().findOne({ disabled: true });
    const { deliveryId } = await posthorn.api.send({ webhookId: disabled?._id }, { n: 1 });
    const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
    expect(body.data).toMatchObject({ status: 'cancelled', reason: 'webhook_disabled' });
  });
});
