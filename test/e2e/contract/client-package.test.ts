import { beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiError, NotFoundError, Posthorn, ValidationError } from '@posthorn/client';
import { startFaultyProxy } from '../../../libs/client/check/faulty-proxy.ts';
import { sendMany } from '../../../libs/client/check/send-through-faults.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { createRandom } from '../../support/samples/seeded-random.ts';
import { eventually } from '../../support/time/eventually.ts';

/** `CLIENT_SENDS=10000 npm test -- contract/client-package` is the long run. */
const SENDS = Number(process.env.CLIENT_SENDS ?? 200);

describe('@posthorn/client', () => {
  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();
  let client: Posthorn;
  let appId: string;

  beforeAll(async () => {
    const { baseUrl, apiKey } = posthorn;
    client = new Posthorn({ baseUrl, apiKey });
    const project = await client.projects.create({ name: 'Shop', uid: 'client-shop' });
    appId = (await client.apps.create({ name: 'Orders', projectId: project.id })).id;
  }, 120_000);

  it('sends a raw payload byte for byte, and waits until it is delivered', async () => {
    const webhook = await client.webhooks.create({ url: receiver.url, appId });
    const rawPayload = '{"n":1.0,"text":"\\u00e9é", "n":1e2}';
    const sent = await client.messages.send({ webhookId: webhook.id, rawPayload });
    const message = await client.messages.waitUntilFinal(sent.id);
    expect([message.status, message.payload]).toEqual(['delivered', rawPayload]);
    expect(receiver.of(sent.id)[0]?.body.toString()).toBe(rawPayload);

    const { items } = await client.messages.listDeliveries(sent.id);
    const delivery = await client.deliveries.get(items[0]?.id ?? '');
    expect(delivery.attempts.map(({ statusCode }) => statusCode)).toEqual([200]);
    expect((await client.find(sent.id)).id).toBe(sent.id);

    await client.deliveries.resend(delivery.id);
    await eventually('the second attempt', () => receiver.of(sent.id)[1]);
    expect((await client.webhooks.health(webhook.id)).circuit).toBe('closed');
    await client.webhooks.delete(webhook.id);
  });

  it('reads uids, creates by upsert, and returns the response', async () => {
    const body = { name: 'Customer', projectId: 'uid:client-shop' };
    const created = client.apps.update('uid:client.17', body, { upsert: true });
    const { data, response, requestId } = await created.withResponse();
    expect([response.status, data.uid]).toEqual([201, 'client.17']);
    expect(requestId).toMatch(/^\S{8,}$/);
    expect((await client.apps.get('uid:client.17')).id).toBe(data.id);
    await client.apps.delete(data.id);
    await expect(client.apps.get(data.id)).rejects.toThrow(NotFoundError);
  });

  it('reads lists page by page, with skip and with a cursor', async () => {
    const names = ['one', 'two', 'three', 'four', 'five'];
    const { id: projectId } = await client.projects.create({ name: 'Lists' });
    for (const name of names) await client.apps.create({ name, projectId });
    const apps = await Array.fromAsync(client.apps.list({ projectId, limit: 2 }));
    expect(apps.map(({ name }) => name)).toEqual(names);

    const externalId = 'listed';
    for (const n of names) await client.messages.send({ appId, externalId, payload: { n } });
    const messages = client.messages.list({ externalId, limit: 2 });
    const payloads = (await Array.fromAsync(messages)).map(({ payload }) => payload);
    expect(payloads).toEqual(names.toReversed().map((n) => JSON.stringify({ n })));
    const page = await messages;
    expect([page.items.length, typeof page.nextCursor]).toEqual([2, 'string']);
  });

  it('replays a creation with its key', async () => {
    const options = { idempotencyKey: 'client-app-1' };
    const { id: projectId } = await client.projects.create({ name: 'Keys' });
    const first = await client.apps.create({ name: 'Once', projectId }, options);
    const again = await client.apps.create({ name: 'Once', projectId }, options).withResponse();
    expect(again.data).toEqual(first);
    expect(again.response.headers.get('idempotency-replayed')).toBe('true');
    const other = client.apps.create({ name: 'Other', projectId }, options);
    await expect(other).rejects.toMatchObject({ status: 422, code: 'idempotency_key_reused' });
  });

  it('throws failures with code, request id and every problem', async () => {
    const error = await client.webhooks.create({ url: 'no url', appId }).then(
      () => null,
      (thrown: unknown) => thrown as ApiError,
    );
    expect(error).toBeInstanceOf(ValidationError);
    expect(error).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(error?.errors?.map(({ path }) => path)).toEqual(['url']);
    expect(error?.requestId).toMatch(/^\S{8,}$/);
  });

  it('says whose key it has', async () => {
    expect((await client.me()).companyId).toBe(posthorn.companyId);
    const created = await client.apiKeys.create({ name: 'Reader', scopes: ['read'] });
    const reader = new Posthorn({ baseUrl: posthorn.baseUrl, apiKey: created.key ?? '' });
    expect((await reader.me()).scopes).toEqual(['read']);
    const refused = reader.webhooks.create({ url: receiver.url, appId });
    await expect(refused).rejects.toMatchObject({ code: 'insufficient_scope' });
    await client.apiKeys.revoke(created.id);
    await expect(reader.me()).rejects.toMatchObject({ name: 'AuthenticationError' });
  });

  it(
    'sends each of many messages once through resets, delays, time-outs, 429 and 503',
    async () => {
      const { baseUrl, apiKey } = posthorn;
      const faults = { share: 0.3, random: createRandom(17) };
      const proxy = await startFaultyProxy(baseUrl, faults);
      const { id } = await client.apps.create({ name: 'Faults', projectId: 'uid:client-shop' });
      try {
        const sends = { sends: SENDS, atOnce: 50, timeoutMs: 2_000 };
        await sendMany({ baseUrl: proxy.baseUrl, apiKey, appId: id, ...sends });
      } finally {
        await proxy.close();
      }
      const numbers: string[] = [];
      for await (const { externalId } of client.messages.list({ appId: id, limit: 100 })) {
        numbers.push(externalId ?? '');
      }
      const expected = Array.from({ length: SENDS }, (_, number) => `send-${number}`);
      expect(numbers.toSorted()).toEqual(expected.toSorted());
      expect(Math.min(...Object.values(proxy.counts))).toBeGreaterThan(0);
    },
    60_000 + SENDS * 100,
  );
});
