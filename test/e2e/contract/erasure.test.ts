import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { dataOf, expectFailure, expectNotFound } from '../../support/api/expect-answers.ts';
import { createResources, type ShownMessage } from '../../support/api/resources.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { readEverything } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

type ReadMessage = Omit<ShownMessage, 'payload'> & { payload: string | null };

const PAYLOAD = { name: 'Ada of the erasure' };
const DAY_MS = 86_400_000;

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();
let store: Awaited<ReturnType<typeof connectMongo>>;

beforeAll(async () => {
  store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
}, 120_000);

afterAll(async () => {
  await store.close();
});

beforeEach(() => {
  receiver.answerWith((response, { body }) => response.writeHead(200).end(body));
});

const erase = (id: string) =>
  posthorn.api.post(`/api/v1/webhook-messages/${id}/erase-payload`, undefined);
const messageOf = async (id: string): Promise<ReadMessage> =>
  dataOf<ReadMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));

async function storedTexts(): Promise<string[]> {
  const everything = await readEverything(store.db);
  return Object.entries(everything).flatMap(([name, all]) =>
    JSON.stringify(all).includes(PAYLOAD.name) ? [name] : [],
  );
}

describe('Erasure · POST /api/v1/webhook-messages/{id}/erase-payload', () => {
  it('leaves the history without payload and responses, and cancels what is pending', async () => {
    const { id: appId } = await make.app();
    const good = await make.webhook({ url: receiver.url, appId });
    const bad = await make.webhook({ url: `${receiver.url}/bad`, appId });
    receiver.answerWith((response, { path, body }) =>
      response.writeHead(path.endsWith('/bad') ? 500 : 200).end(body),
    );
    const body = { appId, payload: PAYLOAD };
    const key = { 'idempotency-key': `erased ${appId}` };
    const accepted = await posthorn.api.post('/webhook-messages', body, key);
    const { id, createdAt, deliveries } = dataOf<ShownMessage>(accepted, 202);
    const [delivered, pending] = deliveries.map((each) => each.id);
    await make.deliveryOnce('delivered', String(delivered));
    await eventually('failed once', async () => {
      return (await make.delivery(String(pending))).attemptCount === 1;
    });

    const erased = await erase(id);
    const kafkaUntil = new Date(Date.parse(createdAt) + 3.25 * DAY_MS).toISOString();
    expect(dataOf(erased)).toEqual({ erased: true, kafkaUntil });
    expect(await messageOf(id)).toMatchObject({
      payload: null,
      signature: null,
      status: 'cancelled',
      deliveries: [
        { webhookId: good.id, status: 'delivered' },
        { webhookId: bad.id, status: 'cancelled' },
      ],
    });
    const shown = await make.delivery(String(pending));
    expect(shown).toMatchObject({ reason: 'payload_erased', nextAttemptAt: null });
    for (const each of [shown, await make.delivery(String(delivered))]) {
      expect(each.attempts).toMatchObject([{ response: null, responseHeaders: [] }]);
    }
    expect(await storedTexts()).toEqual([]);

    expect(dataOf(await erase(id))).toEqual({
      erased: true,
      kafkaUntil,
    });
    const resend = await posthorn.api.post(`/api/v1/deliveries/${String(pending)}/resend`, {});
    expectFailure(resend, 409, 'payload_erased');
    const repeated = await posthorn.api.post('/webhook-messages', body, key);
    expect(repeated.headers.get('idempotency-replayed')).toBe('true');
    expect(repeated.body.data).toEqual(accepted.body.data);
  });

  it('keeps a first attempt from being made whose record has the payload', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url, rateLimitPerSecond: 1 });
    // The last one is attempted ten seconds after the first one.
    const sent = await Promise.all(Array.from({ length: 12 }, () => make.message({ webhookId })));
    const [erased, last] = sent.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(-2);
    if (!erased || !last) throw new Error('twelve messages were sent');
    dataOf(await erase(erased.id));
    await make.deliveryOnce('delivered', String(last.deliveries[0]?.id));
    expect(receiver.of(erased.id)).toEqual([]);
    const shown = await make.delivery(String(erased.deliveries[0]?.id));
    expect(shown).toMatchObject({ status: 'cancelled', reason: 'payload_erased', attemptCount: 0 });
  });

  it('says that Kafka does not have a large payload, or that of an app that wants it erased', async () => {
    const { id: appId } = await make.app({ storePayloads: 'until-delivered' });
    await make.webhook({ url: receiver.url, appId });
    const other = await make.webhook({ url: receiver.url });
    const large = await make.message({
      webhookId: other.id,
      payload: { text: 'x'.repeat(20_000) },
    });
    for (const { id } of [large, await make.message({ appId })]) {
      const { kafkaUntil } = dataOf<{ kafkaUntil: string | null }>(await erase(id));
      expect(kafkaUntil).toBeNull();
    }
  });

  it('is 404 for an unknown message, and for one of another company', async () => {
    const other = await joinShared('contract');
    const theirs = await createResources(other.api).webhook({ url: receiver.url });
    const { id } = await createResources(other.api).message({ webhookId: theirs.id });
    expectNotFound(await erase(id));
    expectNotFound(await erase('msg_1'));
    expect(dataOf(await other.api.get(`/api/v1/webhook-messages/${id}`))).toMatchObject({
      payload: '{"n":1}',
    });
    await other.stop();
  });
});

describe('Erasure · POST /api/v1/deliveries/{id}/erase-responses', () => {
  const eraseResponsesOf = (id: string) =>
    posthorn.api.post(`/api/v1/deliveries/${id}/erase-responses`, undefined);

  it('erases what the endpoint answered, and leaves the rest', async () => {
    receiver.answerWith(failing(1));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const { deliveries } = await make.message({ webhookId, payload: PAYLOAD });
    const id = String(deliveries[0]?.id);
    const before = await eventually('failed once', async () => {
      const shown = await make.delivery(id);
      return shown.attemptCount === 1 ? shown : null;
    });
    expect(before.attempts).toMatchObject([{ response: 'not now' }]);
    for (let n = 0; n < 2; n += 1)
      expect(dataOf(await eraseResponsesOf(id))).toEqual({ erased: true });
    const after = await make.delivery(id);
    const attempts = before.attempts.map((each) => {
      return { ...each, response: null, responseHeaders: [] };
    });
    expect(after).toEqual({ ...before, attempts });
    expect(await messageOf(after.messageId)).toMatchObject({ payload: JSON.stringify(PAYLOAD) });
  });

  it('is 404 for an unknown delivery', async () => {
    expectNotFound(await eraseResponsesOf('dlv_1'));
  });
});
