import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import {
  aTime,
  anId,
  dataOf,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';

const MASKED = expect.stringMatching(/^(Basic )?\*+$/);

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const post = (body: unknown): Promise<ApiAnswer> => posthorn.api.post('/webhook-messages', body);
const hmac = (key: string, text: string) => createHmac('sha256', key).update(text).digest('hex');

describe('Webhook messages · POST /webhook-messages', () => {
  it('returns the created message with a delivery attempt that is not processed yet', async () => {
    const webhook = await make.webhook({ url: receiver.url });
    const body = `{"webhookId":"${webhook.id}","payload":{"order": 17}}`;
    const message = dataOf<ShownMessage>(await post(body), 202);
    const signature = hmac(webhook.secret, '{"order": 17}');
    expect(message).toEqual({
      id: anId('msg'),
      delivered: false,
      payload: '{"order": 17}',
      signature,
      headers: expect.arrayContaining([
        { key: 'Content-Type', value: 'application/json' },
        { key: 'X-Service-Signature', value: signature },
        { key: 'webhook-id', value: message.id },
      ]),
      createdAt: aTime,
      updatedAt: message.createdAt,
      deliveryAttempt: {
        id: anId('att'),
        processed: false,
        resend: false,
        statusCode: null,
        response: null,
        headers: message.headers,
        createdAt: aTime,
        updatedAt: aTime,
      },
      deliveries: [{ id: anId('dlv'), webhookId: webhook.id, status: 'pending', attemptCount: 0 }],
    });
  });

  it('shows the attempt and delivered true after the endpoint has responded', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const created = await make.message({ webhookId });
    await make.deliveryOnce('delivered', String(created.deliveries[0]?.id));
    const answer = await posthorn.api.get(`/api/v1/webhook-messages/${created.id}`);
    expect(dataOf(answer)).toEqual({
      ...created,
      appId: null,
      eventType: null,
      status: 'delivered',
      delivered: true,
      updatedAt: aTime,
      deliveryAttempt: {
        ...created.deliveryAttempt,
        processed: true,
        statusCode: 200,
        response: 'ok',
        createdAt: aTime,
        updatedAt: aTime,
      },
      deliveries: [{ ...created.deliveries[0], status: 'delivered', attemptCount: 1 }],
    });
  });

  it.each([
    [
      'basic',
      { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'hush-1' },
      'Authorization',
    ],
    ['apiKey', { authMethod: 'apiKey', apiKey: 'hush-1', apiKeyHeader: 'X-Own' }, 'X-Own'],
  ])('signs with the secret for %s and masks what is secret', async (_name, auth, key) => {
    const customHeaders = [{ key: 'X-Api-Token', value: 'hush-2' }];
    const { id, secret } = await make.webhook({ url: receiver.url, ...auth, customHeaders });
    const message = await make.message({ webhookId: id, payload: { a: 1 } });
    expect(message.signature).toBe(hmac(secret, '{"a":1}'));
    expect(message.headers).toContainEqual({ key, value: MASKED });
    expect(JSON.stringify(message)).not.toMatch(/hush|whsec_/);
  });
});

describe('Webhook messages · rule 1 · exactly one of appId and webhookId', () => {
  it('refuses both and neither', async () => {
    const webhook = await make.webhook({ url: receiver.url });
    for (const target of [{}, { appId: 'app_1', webhookId: webhook.id }]) {
      expectInvalid(await post({ ...target, payload: {} }), 'appId');
    }
    expectInvalid(await post({ app_id: 'a', webhook_id: 'b', payload: {} }), 'appId');
  });

  it('returns 404 for an unknown app or webhook', async () => {
    expectNotFound(await post({ appId: `app_${'0'.repeat(26)}`, payload: {} }));
    expectNotFound(await post({ webhook_id: `wh_${'0'.repeat(26)}`, payload: {} }));
  });

  it.each<[unknown]>([[undefined], [null], [[]], ['{}'], [17], [true]])(
    'a payload %j is refused',
    async (payload) => {
      expectInvalid(await post({ payload }), 'appId', 'payload');
    },
  );
});

describe('Webhook messages · rules 2 and 3 · targets', () => {
  it('sends a message with appId to all webhooks of the app and to no other', async () => {
    const { id: projectId } = await make.project();
    const { id: appId } = await make.app({ projectId });
    const { id: neighbour } = await make.app({ projectId });
    const url = receiver.url;
    const first = await make.webhook({ url, appId, hmacHeader: 'X-First' });
    const second = await make.webhook({ url, appId, hmacHeader: 'X-Second' });
    await make.webhook({ url, appId: neighbour });
    await make.webhook({ url, projectId, environmentId: 'live' });
    const message = await make.message({ appId });
    const ids = message.deliveries.map(({ webhookId }) => webhookId);
    expect(ids).toEqual([first.id, second.id]);
    expect(message.headers.map(({ key }) => key)).toContain('X-First');
    expect(message.signature).toBe(hmac(first.secret, '{"n":1}'));
    for (const { id } of message.deliveries) await make.deliveryOnce('delivered', id);
    expect(receiver.of(message.id)).toHaveLength(2);
  });

  it('sends a message with webhookId to that webhook only, also to a global one', async () => {
    const { id: projectId } = await make.project();
    const { id: appId } = await make.app({ projectId });
    await make.webhook({ url: receiver.url, appId });
    const own = await make.webhook({ url: receiver.url, appId });
    const global = await make.webhook({ url: receiver.url, projectId, environmentId: 'live' });
    for (const { id: webhookId } of [own, global]) {
      const { id, deliveries } = await make.message({ webhookId });
      expect(deliveries).toEqual([expect.objectContaining({ webhookId })]);
      await make.deliveryOnce('delivered', String(deliveries[0]?.id));
      expect(receiver.of(id)).toHaveLength(1);
    }
  });

  it('accepts a message to an app without webhooks and delivers nothing', async () => {
    const { id: appId } = await make.app();
    expect(await make.message({ appId })).toMatchObject({
      delivered: false,
      signature: null,
      headers: [],
      deliveryAttempt: null,
      deliveries: [],
    });
  });

  it('takes webhooks into account that were created or deleted just before', async () => {
    const { id: appId } = await make.app();
    await make.message({ appId });
    const { id } = await make.webhook({ url: receiver.url, appId });
    expect((await make.message({ appId })).deliveries).toHaveLength(1);
    await posthorn.api.delete(`/webhooks/${id}`);
    expect((await make.message({ appId })).deliveries).toHaveLength(0);
  });
});
