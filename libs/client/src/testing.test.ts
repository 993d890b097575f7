import { beforeEach, describe, expect, test } from '@jest/globals';
import { ConflictError, NotFoundError, Posthorn, ValidationError } from './index.ts';
import { TestApi } from './testing.ts';

describe('the API for tests', () => {
  let api: TestApi;
  let client: Posthorn;

  beforeEach(() => {
    api = new TestApi();
    client = new Posthorn(api.options);
  });

  async function createApp(): Promise<string> {
    const { id: projectId } = await client.projects.create({ name: 'Shop', uid: 'shop' });
    return (await client.apps.create({ name: 'Orders', projectId, uid: 'orders' })).id;
  }

  test('keeps each request as it was made', async () => {
    await client.projects.create({ name: 'Shop' }, { idempotencyKey: 'shop-1' });
    await client.projects.list({ skip: 1 });
    expect(api.requests).toMatchObject([
      {
        method: 'POST',
        path: '/projects',
        query: {},
        headers: { 'idempotency-key': 'shop-1', authorization: 'Bearer phk_test' },
        body: { name: 'Shop' },
        text: '{"name":"Shop"}',
      },
      { method: 'GET', path: '/projects', query: { skip: '1', limit: '100' }, body: null },
    ]);
  });

  test('creates, gets, lists, changes and deletes, by id and by uid', async () => {
    const appId = await createApp();
    const webhook = await client.webhooks.create({ url: 'https://example.com/a', appId });
    const changed = await client.webhooks.update(webhook.id, { disabled: true, uid: 'main' });
    const found = await client.webhooks.get('uid:main');
    expect([changed.disabled, found.id, found.url]).toEqual([
      true,
      webhook.id,
      'https://example.com/a',
    ]);
    const other = await client.apps.update(
      'uid:other',
      { name: 'Other', projectId: 'uid:shop' },
      { upsert: true },
    );
    const apps = await client.apps.list({ projectId: 'uid:shop', limit: 1 }).toArray({ limit: 9 });
    expect(apps.map(({ id }) => id)).toEqual([appId, other.id]);
    expect((await client.webhooks.list({ appId: other.id })).items).toEqual([]);
    await client.projects.delete('uid:shop');
    await expect(client.webhooks.get(webhook.id)).rejects.toThrow(NotFoundError);
  });

  test('has a message of the outcome that the test wants, for the webhooks that receive its type', async () => {
    const appId = await createApp();
    const message = { appId, payload: { n: 1 }, eventType: 'order.paid', tags: ['a'] };
    const none = await client.messages.send(message);
    expect(none).toMatchObject({ noTargetReason: 'no_webhook', deliveryAttempt: null });
    const url = 'https://example.com';
    await client.webhooks.create({ url, appId, eventTypes: ['order.lost'] });
    expect((await client.messages.send(message)).noTargetReason).toBe('event_type');
    const all = await client.webhooks.create({ url, appId });
    const sent = await client.messages.send(message);
    expect(sent.deliveries).toMatchObject([{ webhookId: all.id, status: 'pending' }]);
    expect(await client.messages.waitUntilFinal(sent.id)).toMatchObject({
      status: 'delivered',
      payload: '{"n":1}',
      deliveryAttempt: { processed: true, statusCode: 200 },
    });
    api.outcome = 'exhausted';
    const failed = await client.messages.list({ status: 'exhausted' }).toArray({ limit: 9 });
    expect(failed.map(({ id }) => id)).toEqual([sent.id]);
    const tagged = client.messages.list({ tag: 'a', limit: 1 });
    expect(await tagged.toArray({ limit: 9 })).toHaveLength(3);
    const lists = [
      { tag: 'b' },
      { until: '2020-01-01T00:00:00.000Z' },
      { since: '2999-01-01T00:00:00.000Z' },
      { webhookId: all.id, deliveryStatus: 'pending' as const },
      { webhookId: all.id, deliveryStatus: 'exhausted' as const },
    ];
    const found = lists.map(async (query) => (await client.messages.list(query)).items.length);
    expect(await Promise.all(found)).toEqual([0, 0, 0, 0, 1]);
  });

  test('carries a request out once for each idempotency key', async () => {
    const appId = await createApp();
    const options = { idempotencyKey: 'order-17' };
    const send = (n: number) => client.messages.send({ appId, payload: { n } }, options);
    const first = await send(1);
    const repeat = await send(1).withResponse();
    const replayed = repeat.response.headers.get('idempotency-replayed');
    expect([repeat.data.id, replayed]).toEqual([first.id, 'true']);
    await expect(send(2)).rejects.toThrow(ConflictError);

    const payload = { n: 1 };
    const many = [
      { appId, payload },
      { appId: 'uid:none', payload },
    ];
    const [stored, failed] = await client.messages.sendMany(many, options);
    expect([stored?.status, failed]).toMatchObject([
      'accepted',
      { status: 'failed', code: 'not_found' },
    ]);
    const [again] = await client.messages.sendMany(many, options);
    expect(again).toEqual({ ...stored, status: 'replayed' });
    expect((await client.messages.list()).items).toHaveLength(2);
  });

  test('refuses unknown and missing fields, and a uid that is taken', async () => {
    const wrong = { nmae: 'Shop' } as unknown as { name: string };
    await expect(client.projects.create(wrong)).rejects.toMatchObject({
      name: ValidationError.name,
      errors: [{ path: 'nmae' }, { path: 'name' }],
    });
    const appId = await createApp();
    await expect(client.projects.create({ name: 'B', uid: 'shop' })).rejects.toMatchObject({
      code: 'uid_taken',
    });
    const half = { url: 'https://example.com', appId, authMethod: 'basic', basicAuthUsername: 'a' };
    await expect(client.request('POST', '/webhooks', { body: half })).rejects.toMatchObject({
      errors: [{ path: 'basicAuthPassword' }],
    });
    const messages = [{ appId, payload: {} }, { payload: {} }];
    const call = client.request('POST', '/webhook-messages/batch', { body: { messages } });
    await expect(call).rejects.toMatchObject({ errors: [{ path: 'messages.1.appId' }] });
    expect((await client.messages.list()).items).toEqual([]);
  });

  test('fails as often as the test wants, and where it has no answer', async () => {
    api.failNext(503, 'unavailable');
    api.failNext(429, 'rate_limited');
    await client.projects.create({ name: 'Shop' });
    expect(api.requests).toHaveLength(3);
    api.failNext(403, 'insufficient_scope', 'not with this key');
    await expect(client.projects.list()).rejects.toThrow('not with this key');
    await expect(client.request('POST', '/apps/app_1')).rejects.toMatchObject({ status: 404 });
    await expect(client.statistics.overview()).rejects.toMatchObject({ code: 'route_not_found' });
  });
});
