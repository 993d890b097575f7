import { beforeEach, describe, expect, it } from '@jest/globals';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { dataOf, expectInvalid, expectNotFound } from '../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownMessage } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

const MINUTE_MS = 60_000;

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

beforeEach(() => {
  receiver.answerWith((response) => response.writeHead(200).end('ok'));
});

const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const deliveryIdIn = ({ deliveries }: ShownMessage): string => String(deliveries[0]?.id);

async function ended(message: ShownMessage): Promise<ShownDelivery> {
  return eventually('final', async () => {
    const shown = await make.delivery(deliveryIdIn(message));
    return shown.status === 'pending' ? null : shown;
  });
}

describe('Expiry · expiresAt of a message', () => {
  it('ends a delivery whose next attempt would be later, at once', async () => {
    receiver.answerWith(failing(9));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const expiresAt = inMs(59 * MINUTE_MS);
    const message = await make.message({ webhookId, expiresAt });
    expect(message).toMatchObject({ expiresAt, retentionDays: null });
    expect(await ended(message)).toMatchObject({
      status: 'cancelled',
      reason: 'expired',
      attemptCount: 1,
      nextAttemptAt: null,
    });
    // The retry of this one is due in an hour.
    const later = await make.message({ webhookId, expiresAt: inMs(61 * MINUTE_MS) });
    await eventually('failed once', async () => {
      return (await make.delivery(deliveryIdIn(later))).attemptCount === 1;
    });
    expect(await make.delivery(deliveryIdIn(later))).toMatchObject({ status: 'pending' });
  });

  it('lets no attempt begin that waited for its endpoint, and leaves the message to a resend', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url, rateLimitPerSecond: 1 });
    const expiresAt = inMs(6_000);
    // At one a second, some of them come too late, and far more than that on a busy machine.
    const sent = await Promise.all(
      Array.from({ length: 12 }, () => make.message({ webhookId, expiresAt })),
    );
    const all = await Promise.all(sent.map(ended));
    const late = all.filter(({ status }) => status === 'cancelled');
    expect(late.length).toBeGreaterThanOrEqual(2);
    for (const { messageId, reason, attemptCount } of late) {
      expect([reason, attemptCount, receiver.of(messageId)]).toEqual(['expired', 0, []]);
    }
    const starts = all.flatMap(({ attempts }) => attempts.map(({ createdAt }) => createdAt));
    // Its time is checked just before. An attempt in the turn after it would be later by a second.
    for (const start of starts)
      expect(Date.parse(start)).toBeLessThan(Date.parse(expiresAt) + 1_000);
    const [first] = late;
    if (!first) throw new Error('one has expired');
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${first.id}/resend`, {}));
    expect(await make.deliveryOnce('delivered', first.id)).toMatchObject({ attemptCount: 1 });
  });

  it('is refused when it is over, but a repeat gets the first response', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const body = { webhookId, payload: {}, expiresAt: inMs(5_000) };
    const key = { 'idempotency-key': `expires ${webhookId}` };
    const first = await posthorn.api.post('/webhook-messages', body, key);
    const { id } = dataOf<ShownMessage>(first, 202);
    await eventually('over', () => Date.now() > Date.parse(body.expiresAt) + CLOCK_MS);
    const repeated = await posthorn.api.post('/webhook-messages', body, key);
    expect(dataOf<ShownMessage>(repeated, 202)).toMatchObject({ id, expiresAt: body.expiresAt });
    expectInvalid(await posthorn.api.post('/webhook-messages', body), 'expiresAt');
    const wrong = { ...body, expiresAt: 'soon' };
    expectInvalid(await posthorn.api.post('/webhook-messages', wrong), 'expiresAt');
  });

  it('belongs to a message of a batch too, where only this one fails', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const messages = [inMs(MINUTE_MS), inMs(-1)].map((expiresAt) => {
      return { webhookId, payload: {}, expiresAt };
    });
    const answer = await posthorn.api.post('/api/v1/webhook-messages/batch', { messages });
    expect(dataOf(answer, 202)).toMatchObject({
      results: [{ status: 'accepted' }, { status: 'failed', code: 'invalid_request' }],
    });
  });
});

describe('Retention · retentionDays of a message', () => {
  it('is shown, and at most what the installation keeps', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const message = await make.message({ webhookId, retentionDays: 1 });
    expect(message).toMatchObject({ expiresAt: null, retentionDays: 1 });
    const path = `/api/v1/webhook-messages/${message.id}`;
    expect(dataOf(await posthorn.api.get(path))).toMatchObject({ retentionDays: 1 });
    for (const retentionDays of [0, 31, 1.5, '7']) {
      const answer = await posthorn.api.post('/webhook-messages', {
        webhookId,
        payload: {},
        retentionDays,
      });
      expectInvalid(answer, 'retentionDays');
    }
  });

  it('hides the message and its delivery from then on, and MongoDB removes both', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const message = await make.message({ webhookId, retentionDays: 1 });
    const deliveryId = deliveryIdIn(message);
    await make.deliveryOnce('delivered', deliveryId);
    const store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    const messages = store.db.days.messages.of(message.id);
    const deliveries = store.db.days.deliveries.of(deliveryId);
    const removeAt = new Date(Date.parse(message.createdAt) + 1_440 * MINUTE_MS);
    expect(await messages.findOne({ _id: message.id })).toMatchObject({ removeAt });
    expect(await deliveries.findOne({ _id: deliveryId })).toMatchObject({ removeAt });
    for (const indexes of [await messages.indexes(), await deliveries.indexes()]) {
      expect(indexes).toContainEqual(
        expect.objectContaining({ key: { removeAt: 1 }, expireAfterSeconds: 0, sparse: true }),
      );
    }

    const past = { $set: { removeAt: new Date(Date.now() - 1) } };
    await messages.updateOne({ _id: message.id }, past);
    await deliveries.updateOne({ _id: deliveryId }, past);
    const path = `/api/v1/webhook-messages/${message.id}`;
    expectNotFound(await posthorn.api.get(path));
    expectNotFound(await posthorn.api.get(`${path}/deliveries`));
    expectNotFound(await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`));
    const listed = await posthorn.api.get(`/api/v1/webhook-messages?webhookId=${webhookId}`);
    expect(dataOf(listed)).toEqual([]);
    await store.close();
  });
});
