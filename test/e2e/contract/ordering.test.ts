import { beforeAll, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

const KEY = 'order-17';
const IN_AN_HOUR = new Date(Date.now() + 3_600_000).toISOString();

let webhookId: string;

beforeAll(async () => {
  const webhook = await make.webhook({ url: receiver.url });
  webhookId = webhook.id;
});

describe('Order · orderingKey of a message', () => {
  const send = (fields: object) =>
    posthorn.api.post('/webhook-messages', { webhookId, payload: {}, ...fields });

  it('is shown with it, null without one, and is in no request to an endpoint', async () => {
    const { id } = await make.message({ webhookId, orderingKey: KEY });
    const shown = dataOf(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
    expect(shown).toMatchObject({ orderingKey: KEY });
    await make.deliveryOnce('delivered', deliveryIdOf(id, webhookId));
    const [received] = receiver.of(id);
    expect(JSON.stringify([received?.headers, String(received?.body)])).not.toContain(KEY);
    const { id: other } = await make.message({ webhookId });
    const without = dataOf(await posthorn.api.get(`/api/v1/webhook-messages/${other}`));
    expect(without).toMatchObject({ orderingKey: null });
  });

  it.each([[''], ['x'.repeat(257)], ['a\tb'], ['\ud800'], [17]])(
    'is not %j',
    async (orderingKey) => {
      expectInvalid(await send({ orderingKey }), 'orderingKey');
    },
  );

  it('is 400 with deliverAt, and a batch with both is as a whole', async () => {
    const both = { orderingKey: KEY, deliverAt: IN_AN_HOUR };
    expectInvalid(await send(both), 'deliverAt');
    expect((await send({ ...both, deliverAt: null })).status).toBe(202);
    const message = { webhookId, payload: {} };
    const messages = [message, { ...message, ...both }];
    const batch = await posthorn.api.post('/api/v1/webhook-messages/batch', { messages });
    expectInvalid(batch, 'messages.1.deliverAt');
  });
});
