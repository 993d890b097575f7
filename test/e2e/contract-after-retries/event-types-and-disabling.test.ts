import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownMessage,
  type ShownWebhook,
} from '../../support/api/resources.ts';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

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

  it('is ignored for a message that is addressed to a webhook', async () => {
    for (const fields of [{}, { eventType: 'order.lost' }]) {
      const { deliveries } = await make.message({ webhookId: paid, ...fields });
      await make.deliveryOnce('delivered', String(deliveries[0]?.id));
    }
  });

  it('is shown with the message, and is null when none was given', async () => {
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

  it.each([['', 'x'.repeat(129), 'a b', 7, null]].flat())(
    'refuses the eventType %j',
    async (eventType) => {
      const body = { appId, payload: {}, eventType };
      expectInvalid(await posthorn.api.post('/webhook-messages', body), 'eventType');
    },
  );

  it.each([['order.paid', [['a b']], [[7]], null]].flat())(
    'refuses a webhook with the eventTypes %j',
    async (eventTypes) => {
      const answer = await posthorn.api.put(`/webhooks/${all}`, { eventTypes });
      expect(answer.status).toBe(400);
      expect(answer.body.errors?.[0]?.path).toMatch(/^eventTypes/);
    },
  );
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
      const shown = dataOf<ShownMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
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

  it('get the messages that are sent after they were enabled again', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url, disabled: true });
    await make.message({ webhookId });
    await change(webhookId, { disabled: false });
    const { deliveries } = await make.message({ webhookId });
    await make.deliveryOnce('delivered', String(deliveries[0]?.id));
  });

  it('get no retry: a delivery that waits for one is cancelled', async () => {
    receiver.answerWith(failing(99));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const { id, deliveries } = await make.message({ webhookId });
    await change(webhookId, { disabled: true });
    const delivery = await make.deliveryOnce('cancelled', String(deliveries[0]?.id));
    expect(delivery).toMatchObject({ reason: 'webhook_disabled', nextAttemptAt: null });
    expect(receiver.of(id).length).toBe(delivery.attemptCount);
    receiver.answerWith((response) => response.writeHead(200).end('ok'));
  });

  it.each(['yes', 1, null])('are not made by the value %j, which is refused', async (disabled) => {
    const { id } = await make.webhook({ url: receiver.url });
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, { disabled }), 'disabled');
  });
});
