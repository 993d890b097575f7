import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import {
  failing,
  startReceiver,
  type Answer,
  type Receiver,
} from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
  type ShownMessage,
} from '../../support/api/resources.ts';

const OK: Answer = (response) => response.writeHead(200).end('ok');

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

const resend = (id: string) => posthorn.api.post(`/api/v1/deliveries/${id}/resend`, undefined);
const disable = async (id: string, disabled: boolean) =>
  dataOf(await posthorn.api.put(`/webhooks/${id}`, { disabled }));

/** Sends messages that fail to a webhook; returns their deliveries, all exhausted. */
async function exhausted(webhookId: string, count = 1): Promise<ShownDelivery[]> {
  receiver.answerWith(failing(99));
  const made = await Promise.all(Array.from({ length: count }, () => make.message({ webhookId })));
  const ids = made.map(({ deliveries }) => String(deliveries[0]?.id));
  return Promise.all(ids.map((id) => make.deliveryOnce('exhausted', id)));
}

async function attempted(id: string, count: number): Promise<ShownDelivery> {
  return eventually(`attempt ${count}`, async () => {
    const shown = await make.delivery(id);
    return shown.attemptCount === count ? shown : null;
  });
}

describe('Resend · POST /api/v1/deliveries/{id}/resend', () => {
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

  it('is allowed for a delivered delivery, which stays delivered even when the resend fails', async () => {
    receiver.answerWith(OK);
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const { deliveries } = await make.message({ webhookId });
    const { id } = await make.deliveryOnce('delivered', String(deliveries[0]?.id));
    receiver.answerWith(failing(99));
    dataOf(await resend(id));
    expect(await attempted(id, 2)).toMatchObject({ status: 'delivered' });
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
