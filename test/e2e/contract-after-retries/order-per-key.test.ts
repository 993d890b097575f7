import { beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import {
  numberIn,
  type ShownKey,
  useOrderedWebhook,
} from '../../support/process/use-ordered-webhook.ts';
import { eventually } from '../../support/time/eventually.ts';

/** See docs/contract.md C29. The first message of each test has `n: 1`, and the endpoint refuses it. */
describe('Deliveries with an ordering key', () => {
  const { posthorn, make, receiver, begin, path, send, arrived, keys } =
    useOrderedWebhook('contract-after-retries');

  async function beginRefused(ordering: 'block' | 'skip'): Promise<void> {
    await begin(ordering);
    receiver.answerWith((response, received) => {
      response.writeHead(numberIn(received) === 1 ? 500 : 200).end();
    });
  }

  const blocked = async (): Promise<ShownKey | undefined> =>
    (await keys()).find(({ state }) => state === 'blocked');

  describe('to a webhook with block', () => {
    let first: ShownDelivery;
    let second: ShownDelivery;

    beforeEach(async () => {
      await beginRefused('block');
      first = await send(1, 'order-1');
      second = await send(2, 'order-1');
      await send(3, 'order-1');
      const other = await send(4, 'order-2');
      await make.deliveryOnce('delivered', other.id);
      await make.deliveryOnce('exhausted', first.id);
      await eventually('the key is blocked', blocked);
    });

    it('wait behind an exhausted one, and go on in their order when it is skipped', async () => {
      expect(arrived()).toEqual([1, 4]);
      expect(await blocked()).toMatchObject({
        orderingKey: 'order-1',
        headDeliveryId: first.id,
        waiting: 2,
      });
      expect(await make.delivery(second.id)).toMatchObject({ status: 'pending', waiting: 'order' });
      const body = { orderingKey: 'order-1', deliveryId: first.id };
      dataOf(await posthorn.api.post(path('/ordering-keys/skip'), body));
      await eventually('the others', () => arrived().includes(3));
      expect(arrived()).toEqual([1, 4, 2, 3]);
      await eventually('the key is free', async () => (await keys()).length === 0);
    });

    it('go on when it is sent again with success', async () => {
      receiver.answerWith((response) => response.writeHead(200).end());
      dataOf(await posthorn.api.post(`/api/v1/deliveries/${first.id}/resend`, {}));
      await eventually('the others', () => arrived().includes(3));
      expect(arrived()).toEqual([1, 4, 2, 3]);
      await eventually('the key is free', async () => (await keys()).length === 0);
    });

    it('go on when the webhook skips what is exhausted', async () => {
      dataOf(await posthorn.api.put(path(), { ordering: 'skip' }));
      await eventually('the others', () => arrived().includes(3));
      expect(arrived()).toEqual([1, 4, 2, 3]);
    });

    it('are cancelled when the webhook is disabled', async () => {
      dataOf(await posthorn.api.put(path(), { disabled: true }));
      const ended = await make.deliveryOnce('cancelled', second.id);
      expect(ended).toMatchObject({ reason: 'webhook_disabled', attemptCount: 0 });
    });
  });

  it('follow one that is exhausted, to a webhook with skip', async () => {
    await beginRefused('skip');
    const first = await send(1, 'order-1');
    for (const n of [2, 3]) await send(n, 'order-1');
    await eventually('the others', () => arrived().includes(3));
    expect(await make.delivery(first.id)).toMatchObject({ status: 'exhausted' });
    expect(arrived()).toEqual([1, 2, 3]);
  });

  it('follow one that is cancelled', async () => {
    await beginRefused('block');
    const first = await send(1, 'order-1');
    await send(2, 'order-1');
    await eventually('its first attempt', () => arrived().length > 0);
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${first.id}/cancel`, {}));
    await eventually('the other', () => arrived().includes(2));
    expect(arrived()).toEqual([1, 2]);
  });

  it('follow one whose payload is erased', async () => {
    await beginRefused('block');
    const first = await send(1, 'order-1');
    await send(2, 'order-1');
    await eventually('its first attempt', () => arrived().length > 0);
    const { messageId } = await make.delivery(first.id);
    const erase = `/api/v1/webhook-messages/${messageId}/erase-payload`;
    dataOf(await posthorn.api.post(erase, {}));
    await eventually('the other', () => arrived().includes(2));
  });

  it('come in their order after a hold', async () => {
    await begin('block');
    dataOf(await posthorn.api.post(path('/hold'), {}));
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
    dataOf(await posthorn.api.post(path('/resume'), {}), 202);
    await eventually('all', () => arrived().length === numbers.length);
    expect(arrived()).toEqual(numbers);
  });
});
