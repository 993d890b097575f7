import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownMessage } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { countIn } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

/** More than a page of the list has by default. */
const DISABLED = 60;
const MESSAGES = 3;

interface Resend {
  id: string;
  status: string;
  total: number;
  succeeded: number;
}

/** docs/contract.md C10.8. */
describe('A webhook that is disabled at acceptance', () => {
  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let mongo: MongoConnection;
  let appId: string;
  let enabled: string;
  let disabled: string[];
  let messages: ShownMessage[];

  beforeAll(async () => {
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    await mongo.readLayout();
    ({ id: appId } = await make.app());
    ({ id: enabled } = await make.webhook({ url: receiver.url, appId }));
    const off = { url: `${receiver.url}/off`, appId, disabled: true };
    disabled = await Array.fromAsync(
      { length: DISABLED },
      async () => (await make.webhook(off)).id,
    );
    messages = await Array.fromAsync({ length: MESSAGES }, () => make.message({ appId }));
  }, 120_000);

  afterAll(() => mongo.close());

  const documents = (filter: object): Promise<number> => countIn(mongo.db.days.deliveries, filter);
  const cancelledIds = (): string[] =>
    messages.toReversed().flatMap(({ deliveries }) =>
      deliveries
        .filter(({ webhookId }) => webhookId !== enabled)
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );

  async function listed(query: string): Promise<ShownDelivery[]> {
    const found: ShownDelivery[] = [];
    for (let cursor = ''; ;) {
      const path = `/api/v1/deliveries?${query}&limit=50${cursor && `&cursor=${cursor}`}`;
      const answer: ApiAnswer = await posthorn.api.get(path);
      found.push(...dataOf<ShownDelivery[]>(answer));
      const { nextCursor } = answer.body as { nextCursor: string | null };
      if (nextCursor === null) return found;
      cursor = nextCursor;
    }
  }

  const totalOf = async (path: string): Promise<unknown> => dataOf(await posthorn.api.get(path));
  const ended = (id: string): Promise<Resend> =>
    eventually('the end of the resend', async () => {
      const shown = dataOf<Resend>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'done' ? shown : null;
    });

  it('gets no document of its delivery, which every list has all the same', async () => {
    for (const { deliveries } of messages) {
      const own = deliveries.find(({ webhookId }) => webhookId === enabled);
      await make.deliveryOnce('delivered', String(own?.id));
    }
    const expected = { status: 'cancelled', reason: 'webhook_disabled', attemptCount: 0 };
    const found = await listed(`appId=${appId}&status=cancelled`);
    expect(found.map(({ id }) => id)).toEqual(cancelledIds());
    for (const each of found) expect(each).toMatchObject(expected);
    const [first = ''] = disabled;
    const ofOne = await listed(`webhookId=${first}&status=pending,exhausted,cancelled`);
    expect(ofOne.map(({ messageId }) => messageId)).toEqual(
      messages.map(({ id }) => id).toReversed(),
    );
    expect(await make.delivery(String(ofOne[0]?.id))).toMatchObject({ ...expected, attempts: [] });
    const path = `/api/v1/webhook-messages?appId=${appId}&status=cancelled`;
    expect(await totalOf(path)).toHaveLength(MESSAGES);
    expect(await totalOf(`/api/v1/webhooks/${first}/health`)).toMatchObject({ backlog: 0 });
    expect(await documents({ appId })).toBe(MESSAGES);
    expect(receiver.received.filter(({ path }) => path.endsWith('/off'))).toEqual([]);
  });

  it('gets none by what cancels and erases either', async () => {
    const [, second = ''] = disabled;
    dataOf(await posthorn.api.post(`/api/v1/webhooks/${second}/cancel-pending`, {}), 202);
    const erased = await make.message({ webhookId: second });
    dataOf(await posthorn.api.post(`/api/v1/webhook-messages/${erased.id}/erase-payload`, {}));
    const isOver = async (): Promise<boolean> =>
      (await mongo.db.collection('webhooks').countDocuments({
        _id: second as never,
        isCancelling: true,
      })) === 0;
    await eventually('the end of the cancellation', isOver);
    expect(await documents({ webhookId: second })).toBe(0);
    expect(await make.delivery(String(erased.deliveries[0]?.id))).toMatchObject({
      reason: 'webhook_disabled',
    });
  });

  it('gets what it has missed by resends once it is enabled, with a document of each', async () => {
    const [, , third = '', fourth = ''] = disabled;
    for (const id of [third, fourth]) {
      dataOf(await posthorn.api.put(`/webhooks/${id}`, { disabled: false }));
    }
    const since = new Date(0).toISOString();
    const ofApp = `/api/v1/apps/${appId}/resend-failed`;
    expect(await totalOf(`${ofApp}/estimate?since=${since}`)).toEqual({ total: 2 * MESSAGES });
    const planned = await totalOf(`/api/v1/deliveries/resend/estimate?appId=${appId}`);
    expect(planned).toMatchObject({ deliveries: 2 * MESSAGES, webhooks: 2, isComplete: true });
    const ofThird = `/api/v1/webhooks/${third}/resend-failed`;
    const one = dataOf<Resend>(await posthorn.api.post(ofThird, { since }), 202);
    expect(await ended(one.id)).toMatchObject({ total: MESSAGES, succeeded: MESSAGES });
    expect(await documents({ webhookId: third, status: 'delivered' })).toBe(MESSAGES);
    const [ofFourth] = await listed(`webhookId=${fourth}&status=cancelled`);
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${String(ofFourth?.id)}/resend`, {}));
    await make.deliveryOnce('delivered', String(ofFourth?.id));
    expect(await documents({ webhookId: fourth })).toBe(1);
    const all = dataOf<Resend>(await posthorn.api.post(ofApp, { since }), 202);
    expect(await ended(all.id)).toMatchObject({ succeeded: MESSAGES - 1 });
    expect(await listed(`webhookId=${fourth}&status=cancelled`)).toEqual([]);
    expect(await documents({ appId })).toBe(3 * MESSAGES);
  });
});
