import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import {
  type ShownApp,
  type ShownDelivery,
  type ShownMessage,
  type ShownWebhook,
} from '../../support/api/resources.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { type Answer, failing } from '../../support/receivers/receiver.ts';
import { readEverything } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('Resend · POST /api/v1/deliveries/{id}/resend', () => {
  const OK: Answer = (response) => response.writeHead(200).end('ok');

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  const resend = (id: string) => posthorn.api.post(`/api/v1/deliveries/${id}/resend`, undefined);
  const disable = async (id: string, disabled: boolean) =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, { disabled }));

  /** Sends messages that fail to a webhook; returns their deliveries, all exhausted. */
  async function exhausted(webhookId: string, count = 1): Promise<ShownDelivery[]> {
    receiver.answerWith(failing(99));
    const made = await Promise.all(
      Array.from({ length: count }, () => make.message({ webhookId })),
    );
    const ids = made.map(({ deliveries }) => String(deliveries[0]?.id));
    return Promise.all(ids.map((id) => make.deliveryOnce('exhausted', id)));
  }

  async function attempted(id: string, count: number): Promise<ShownDelivery> {
    return eventually(`attempt ${count}`, async () => {
      const shown = await make.delivery(id);
      return shown.attemptCount === count ? shown : null;
    });
  }

  it('makes one attempt with the next number, and its success makes the delivery and its message delivered', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [{ id, messageId } = { id: '', messageId: '' }] = await exhausted(webhookId);
    receiver.answerWith(OK);
    expect(dataOf<ShownDelivery>(await resend(id))).toMatchObject({ id, webhookId });
    const { attempts } = await make.deliveryOnce('delivered', id);
    expect(attempts.map((each) => [each.number, each.resend, each.outcome])).toEqual([
      [1, false, 'http_5xx'],
      [2, false, 'http_5xx'],
      [3, true, 'success'],
    ]);
    const message = await posthorn.api.get(`/api/v1/webhook-messages/${messageId}`);
    expect(dataOf<ShownMessage>(message)).toMatchObject({
      status: 'delivered',
      delivered: true,
      deliveryAttempt: { resend: true, processed: true, statusCode: 200 },
    });
    expect(receiver.of(messageId)).toHaveLength(3);
  });

  it('is not retried: a failed resend leaves the status of the delivery as it was', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [{ id, messageId } = { id: '', messageId: '' }] = await exhausted(webhookId);
    dataOf(await resend(id));
    expect(await attempted(id, 3)).toMatchObject({ status: 'exhausted', nextAttemptAt: null });
    dataOf(await resend(id));
    expect((await attempted(id, 4)).attempts.at(-1)).toMatchObject({ number: 4, resend: true });
    expect(receiver.of(messageId)).toHaveLength(4);
  });

  it('is refused with 409 while the delivery is pending and while another resend runs', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [{ id } = { id: '' }] = await exhausted(webhookId);
    let respond = (): void => undefined;
    const held = new Promise<void>((resolve) => (respond = resolve));
    receiver.answerWith((response) => {
      void held.then(() => response.writeHead(200).end('ok'));
    });
    const { deliveries } = await make.message({ webhookId });
    expectFailure(await resend(String(deliveries[0]?.id)), 409, 'delivery_pending');
    dataOf(await resend(id));
    expectFailure(await resend(id), 409, 'resend_running');
    respond();
    await make.deliveryOnce('delivered', id);
    dataOf(await resend(id));
    await attempted(id, 4);
  });

  it('reaches a webhook that was disabled, after it is enabled again', async () => {
    receiver.answerWith(OK);
    const { id: webhookId } = await make.webhook({ url: receiver.url, disabled: true });
    const { id: messageId, deliveries } = await make.message({ webhookId });
    const { id } = await make.deliveryOnce('cancelled', String(deliveries[0]?.id));
    expectFailure(await resend(id), 409, 'webhook_disabled');
    await disable(webhookId, false);
    await eventually('accepted', async () => (await resend(id)).status === 200);
    const { attempts, reason } = await make.deliveryOnce('delivered', id);
    expect([attempts.length, attempts[0]?.number, reason]).toEqual([1, 1, null]);
    expect(receiver.of(messageId)).toHaveLength(1);
  });

  it('is refused with 409 when the webhook was deleted, and with 404 when there is no delivery', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [{ id } = { id: '' }] = await exhausted(webhookId);
    expectDeleted(await posthorn.api.delete(`/webhooks/${webhookId}`));
    expectFailure(await resend(id), 409, 'webhook_deleted');
    expectNotFound(await resend(`dlv_${'0'.repeat(26)}`));
  });
});

describe('Payloads that are not stored', () => {
  type Store = Awaited<ReturnType<typeof connectMongo>>;
  type Stored = ShownApp & { storeResponses?: boolean; storePayloads?: string };

  /** The payload is null once it is erased. */
  type ReadMessage = Omit<ShownMessage, 'payload'> & { payload: string | null };

  const UNTIL_DELIVERED = { storePayloads: 'until-delivered' };
  const PAYLOAD = { card: 'private' };

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let store: Store;

  beforeAll(async () => {
    store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  }, 120_000);

  afterAll(async () => {
    await store.close();
  });

  beforeEach(() => {
    receiver.answerWith((response) => response.writeHead(200).end('secret answer'));
  });

  const messageOf = async (id: string): Promise<ReadMessage> =>
    dataOf<ReadMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));

  describe('The settings of an app for stored content', () => {
    it('are shown once set, and can be changed', async () => {
      const api = withCompanyId(posthorn);
      const plain = await make.app();
      expect(Object.keys(plain)).not.toContain('storeResponses');
      const { id } = await make.app({ storeResponses: false, ...UNTIL_DELIVERED });
      const settings = { storeResponses: false, ...UNTIL_DELIVERED };
      expect(dataOf<Stored>(await api.get(`/apps/${id}`))).toMatchObject(settings);
      const changed = await api.put(`/apps/${id}`, { storeResponses: true, name: 'Other' });
      expect(dataOf<Stored>(changed)).toMatchObject({ storeResponses: true, ...UNTIL_DELIVERED });
    });
  });

  describe('An app without stored responses', () => {
    it('has attempts without body and headers of the response, also for a message to its webhook', async () => {
      const { id: appId } = await make.app({ storeResponses: false });
      const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
      receiver.answerWith(failing(1));
      for (const target of [{ appId }, { webhookId }]) {
        const { deliveries } = await make.message(target);
        const { attempts } = await make.deliveryOnce('delivered', String(deliveries[0]?.id));
        expect(attempts.map(({ statusCode, outcome }) => [statusCode, outcome])).toEqual([
          [500, 'http_5xx'],
          [200, 'success'],
        ]);
        for (const attempt of attempts) {
          expect(attempt).toMatchObject({ response: null, responseHeaders: [] });
        }
      }
    });
  });

  describe('An app whose payloads are stored until they are delivered', () => {
    it('loses a payload after every delivery of it, and a resend is refused', async () => {
      const { id: appId } = await make.app(UNTIL_DELIVERED);
      for (let n = 0; n < 2; n += 1) await make.webhook({ url: receiver.url, appId });
      const body = { appId, payload: PAYLOAD };
      const key = { 'idempotency-key': `once ${appId}` };
      const accepted = await posthorn.api.post('/webhook-messages', body, key);
      const { id, payload, deliveries } = dataOf<ShownMessage>(accepted, 202);
      expect(payload).toBe(JSON.stringify(PAYLOAD));
      await eventually('erased', async () => (await messageOf(id)).payload === null);
      expect(receiver.of(id).map((each) => each.body.toString())).toEqual([payload, payload]);

      expect(await messageOf(id)).toMatchObject({
        delivered: true,
        payload: null,
        signature: null,
      });
      const listed = await posthorn.api.get(`/api/v1/webhook-messages?appId=${appId}`);
      expect(dataOf(listed)).toMatchObject([{ id, payload: null }]);
      const path = `/api/v1/deliveries/${String(deliveries[0]?.id)}`;
      expect(dataOf(await posthorn.api.get(path))).toMatchObject({ status: 'delivered' });
      expectFailure(await posthorn.api.post(`${path}/resend`, {}), 409, 'payload_erased');
      const repeated = await posthorn.api.post('/webhook-messages', body, key);
      expect(repeated.headers.get('idempotency-replayed')).toBe('true');
      expect(repeated.body.data).toEqual(accepted.body.data);
      const everything = await readEverything(store.db);
      for (const [name, all] of Object.entries(everything)) {
        expect([name, JSON.stringify(all).includes('private')]).toEqual([name, false]);
      }
      expect(JSON.stringify(everything.messages)).toContain(id);
      expect(JSON.stringify(everything.deliveries)).toContain(id);
    });

    it('keeps the payload of a failure, until a resend delivers it', async () => {
      const { id: appId } = await make.app(UNTIL_DELIVERED);
      await make.webhook({ url: receiver.url, appId });
      receiver.answerWith(failing(2));
      const { id, deliveries } = await make.message({ appId });
      const deliveryId = String(deliveries[0]?.id);
      await make.deliveryOnce('exhausted', deliveryId);
      expect(await messageOf(id)).toMatchObject({ payload: '{"n":1}' });
      dataOf(await posthorn.api.post(`/api/v1/deliveries/${deliveryId}/resend`, {}));
      await eventually('erased', async () => (await messageOf(id)).payload === null);
      expect(receiver.of(id).at(-1)?.body.toString()).toBe('{"n":1}');
    });
  });
});

describe('Event types and disabled webhooks', () => {
  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  const change = async (id: string, changes: object): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, changes));

  describe('Event types · eventType of a message to an app', () => {
    let appId: string;
    let all: string;
    let paid: string;
    let both: string;

    beforeAll(async () => {
      ({ id: appId } = await make.app());
      const webhook = async (eventTypes: string[]) =>
        (await make.webhook({ url: receiver.url, appId, eventTypes })).id;
      all = await webhook([]);
      paid = await webhook(['order.paid']);
      both = await webhook(['order.paid', 'order.sent']);
    });

    it.each<[string | undefined, () => string[]]>([
      ['order.paid', () => [all, paid, both]],
      ['order.sent', () => [all, both]],
      ['order.lost', () => [all]],
      ['order', () => [all]],
      ['ORDER.PAID', () => [all]],
      [undefined, () => [all]],
    ])('%s goes to the webhooks that want it', async (eventType, wanted) => {
      const message = await make.message({ appId, ...(eventType && { eventType }) });
      expect(message.deliveries.map(({ webhookId }) => webhookId)).toEqual(wanted());
      for (const { id } of message.deliveries) await make.deliveryOnce('delivered', id);
      expect(receiver.of(message.id)).toHaveLength(wanted().length);
    });

    it('is shown with the message, and is null by default', async () => {
      const shown = async (fields: object) => {
        const { id } = await make.message({ appId, ...fields });
        return dataOf<object>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
      };
      expect(await shown({ event_type: 'order.paid' })).toMatchObject({ eventType: 'order.paid' });
      expect(await shown({})).toMatchObject({ eventType: null });
    });

    it('applies a change of the eventTypes of a webhook at once', async () => {
      const { id: own } = await make.app();
      const { id } = await make.webhook({ url: receiver.url, appId: own, eventTypes: ['a'] });
      const reached = async () =>
        (await make.message({ appId: own, eventType: 'b' })).deliveries.length;
      expect(await reached()).toBe(0);
      await change(id, { eventTypes: ['a', 'b'] });
      expect(await reached()).toBe(1);
    });
  });

  describe('Disabled webhooks', () => {
    const CANCELLED = { status: 'cancelled', attemptCount: 0 };

    it.each(['webhookId', 'appId'])(
      'addressed by %s get a delivery that is cancelled at once, with a reason',
      async (addressed) => {
        const { id: appId } = await make.app();
        const { id: webhookId } = await make.webhook({ url: receiver.url, appId, disabled: true });
        const target = addressed === 'appId' ? { appId } : { webhookId };
        const message = await make.message(target);
        expect(message.deliveries).toEqual([expect.objectContaining({ webhookId, ...CANCELLED })]);
        expect(message.delivered).toBe(false);
        expect(await make.delivery(String(message.deliveries[0]?.id))).toMatchObject({
          status: 'cancelled',
          reason: 'webhook_disabled',
          attempts: [],
          nextAttemptAt: null,
        });
        const { id } = message;
        const shown = dataOf<ShownMessage>(
          await posthorn.api.get(`/api/v1/webhook-messages/${id}`),
        );
        expect(shown).toMatchObject({ status: 'cancelled', delivered: false });
      },
    );

    it('get nothing, while the other webhooks of the app get their deliveries', async () => {
      const { id: appId } = await make.app();
      const { id: disabled } = await make.webhook({ url: receiver.url, appId });
      const { id: enabled } = await make.webhook({ url: receiver.url, appId });
      expect(await change(disabled, { disabled: true })).toMatchObject({ disabled: true });
      const message = await make.message({ appId });
      expect(message.deliveries.map(({ webhookId, status }) => [webhookId, status])).toEqual([
        [disabled, 'cancelled'],
        [enabled, 'pending'],
      ]);
      await make.deliveryOnce('delivered', String(message.deliveries[1]?.id));
      expect(receiver.of(message.id)).toHaveLength(1);
    });
  });
});
