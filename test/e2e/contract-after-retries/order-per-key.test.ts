import { beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { eventually } from '../../support/time/eventually.ts';

interface ShownKey {
  orderingKey: string;
  state: string;
  headDeliveryId: string;
  waiting: number;
}

/** See docs/contract.md C29. The first message of each test has `n: 1`, and the endpoint refuses it. */
describe('Deliveries with an ordering key', () => {
  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let webhookId: string;

  const numberIn = (body: Buffer): number => (JSON.parse(String(body)) as { n: number }).n;
  const isOurs = ({ path }: { path: string }): boolean => path.endsWith(webhookId);
  /** The numbers of the messages, in the order of their requests. */
  const arrived = (): number[] =>
    receiver.received.filter(isOurs).map(({ body }) => numberIn(body));
  const arrivedOnce = (): number[] => [...new Set(arrived())];
  const keys = async (): Promise<ShownKey[]> =>
    dataOf(await posthorn.api.get(`/api/v1/webhooks/${webhookId}/ordering-keys`));

  function refuseFirst(): void {
    receiver.answerWith((response, { body }) => {
      response.writeHead(numberIn(body) === 1 ? 500 : 200).end();
    });
  }

  async function webhook(ordering: 'block' | 'skip'): Promise<void> {
    ({ id: webhookId } = await make.webhook({ url: receiver.url, ordering }));
    const url = `${receiver.url}?${webhookId}`;
    dataOf(await posthorn.api.put(`/api/v1/webhooks/${webhookId}`, { url }));
    receiver.received.length = 0;
    refuseFirst();
  }

  async function send(n: number, orderingKey: string): Promise<ShownDelivery> {
    const { deliveries } = await make.message({ webhookId, orderingKey, payload: { n } });
    return deliveries[0] as ShownDelivery;
  }

  const blocked = async (): Promise<ShownKey | undefined> =>
    (await keys()).find(({ state }) => state === 'blocked');

  describe('to a webhook with block', () => {
    let first: ShownDelivery;
    let second: ShownDelivery;

    beforeEach(async () => {
      await webhook('block');
      first = await send(1, 'order-1');
      second = await send(2, 'order-1');
      await send(3, 'order-1');
      const other = await send(4, 'order-2');
      await make.deliveryOnce('delivered', other.id);
      await make.deliveryOnce('exhausted', first.id);
      await eventually('the key is blocked', blocked);
    });

    it('wait behind an exhausted one, and go on in their order when it is skipped', async () => {
      expect(arrivedOnce()).toEqual([1, 4]);
      expect(await blocked()).toMatchObject({
        orderingKey: 'order-1',
        headDeliveryId: first.id,
        waiting: 2,
      });
      expect(await make.delivery(second.id)).toMatchObject({ status: 'pending', waiting: 'order' });
      const body = { orderingKey: 'order-1', deliveryId: first.id };
      dataOf(await posthorn.api.post(`/api/v1/webhooks/${webhookId}/ordering-keys/skip`, body));
      await eventually('the others', () => arrived().includes(3));
      expect(arrivedOnce()).toEqual([1, 4, 2, 3]);
      await eventually('the key is free', async () => (await keys()).length === 0);
    });

    it('go on when it is sent again with success', async () => {
      receiver.answerWith((response) => response.writeHead(200).end());
      dataOf(await posthorn.api.post(`/api/v1/deliveries/${first.id}/resend`, {}));
      await eventually('the others', () => arrived().includes(3));
      expect(arrivedOnce()).toEqual([1, 4, 2, 3]);
      await eventually('the key is free', async () => (await keys()).length === 0);
    });

    it('go on when the webhook skips what is exhausted', async () => {
      dataOf(await posthorn.api.put(`/api/v1/webhooks/${webhookId}`, { ordering: 'skip' }));
      await eventually('the others', () => arrived().includes(3));
      expect(arrivedOnce()).toEqual([1, 4, 2, 3]);
    });

    it('are cancelled when the webhook is disabled', async () => {
      dataOf(await posthorn.api.put(`/api/v1/webhooks/${webhookId}`, { disabled: true }));
      const ended = await make.deliveryOnce('cancelled', second.id);
      expect(ended).toMatchObject({ reason: 'webhook_disabled', attemptCount: 0 });
    });
  });

  it('follow one that is exhausted, to a webhook with skip', async () => {
    await webhook('skip');
    const first = await send(1, 'order-1');
    for (const n of [2, 3]) await send(n, 'order-1');
    await eventually('the others', () => arrived().includes(3));
    expect(await make.delivery(first.id)).toMatchObject({ status: 'exhausted' });
    expect(arrivedOnce()).toEqual([1, 2, 3]);
  });

  it('follow one that is cancelled', async () => {
    await webhook('block');
    const first = await send(1, 'order-1');
    await send(2, 'order-1');
    await eventually('its first attempt', () => arrived().length > 0);
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${first.id}/cancel`, {}));
    await eventually('the other', () => arrived().includes(2));
    expect(arrivedOnce()).toEqual([1, 2]);
  });

  it('follow one whose payload is erased', async () => {
    await webhook('block');
    const first = await make.message({ webhookId, orderingKey: 'order-1', payload: { n: 1 } });
    await send(2, 'order-1');
    await eventually('its first attempt', () => arrived().length > 0);
    const erase = `/api/v1/webhook-messages/${first.id}/erase-payload`;
    dataOf(await posthorn.api.post(erase, {}));
    await eventually('the other', () => arrived().includes(2));
  });

  it('come in their order after a hold', async () => {
    await webhook('block');
    receiver.answerWith((response) => response.writeHead(200).end());
    const path = `/api/v1/webhooks/${webhookId}`;
    dataOf(await posthorn.api.post(`${path}/hold`, {}));
    const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
    const sent: ShownDelivery[] = [];
    for (const n of numbers) sent.push(await send(n, 'order-1'));
    const waitingOf = async ({ id }: ShownDelivery): Promise<string | null> => {
      const shown = await posthorn.api.get(`/api/v1/deliveries/${id}`);
      return dataOf<{ waiting: string | null }>(shown).waiting;
    };
    await eventually('all wait', async () =>
      (await Promise.all(sent.map(waitingOf))).every((each) => each !== null),
    );
    dataOf(await posthorn.api.post(`${path}/resume`, {}), 202);
    await eventually('all', () => arrivedOnce().length === numbers.length);
    expect(arrivedOnce()).toEqual(numbers);
  });
});
