import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownApp,
  type ShownMessage,
} from '../../support/api/resources.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { readEverything } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

type Store = Awaited<ReturnType<typeof connectMongo>>;
type Stored = ShownApp & { storeResponses?: boolean; storePayloads?: string };

/** The payload is null once it is erased. */
type ReadMessage = Omit<ShownMessage, 'payload'> & { payload: string | null };

const UNTIL_DELIVERED = { storePayloads: 'until-delivered' };
const PAYLOAD = { card: 'private' };

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;
let store: Store;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
  store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
}, 120_000);

afterAll(async () => {
  await store.close();
  await receiver.close();
  await posthorn.stop();
}, 60_000);

beforeEach(() => {
  receiver.answerWith((response) => response.writeHead(200).end('secret answer'));
});

const messageOf = async (id: string): Promise<ReadMessage> =>
  dataOf<ReadMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));

describe('The settings of an app for what is stored', () => {
  it('are shown once they are given, and can be changed', async () => {
    const api = withCompanyId(posthorn);
    const plain = await make.app();
    expect(Object.keys(plain)).not.toContain('storeResponses');
    const { id } = await make.app({ storeResponses: false, ...UNTIL_DELIVERED });
    const settings = { storeResponses: false, ...UNTIL_DELIVERED };
    expect(dataOf<Stored>(await api.get(`/apps/${id}`))).toMatchObject(settings);
    const changed = await api.put(`/apps/${id}`, { storeResponses: true, name: 'Other' });
    expect(dataOf<Stored>(changed)).toMatchObject({ storeResponses: true, ...UNTIL_DELIVERED });
    const wrong = await api.put(`/apps/${id}`, { storeResponses: 'no', storePayloads: 'never' });
    expectInvalid(wrong, 'storeResponses', 'storePayloads');
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

    expect(await messageOf(id)).toMatchObject({ delivered: true, payload: null, signature: null });
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
