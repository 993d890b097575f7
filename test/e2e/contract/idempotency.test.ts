import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import { createCompany, withCompanyId } from '../../support/process/companies.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';

let posthorn: OwnGateway;
let receiver: Receiver;
let make: Resources;
let webhookId: string;

beforeAll(async () => {
  posthorn = await joinWithGateway('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
  ({ id: webhookId } = await make.webhook({ url: receiver.url }));
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const post = (
  key: string,
  body: unknown = { webhookId, payload: { n: 1 } },
  path = '/webhook-messages',
): Promise<ApiAnswer> => posthorn.api.post(path, body, { 'idempotency-key': key });

function expectReplay(answer: ApiAnswer, first: ApiAnswer): void {
  expect(answer.status).toBe(202);
  expect(answer.headers.get('idempotency-replayed')).toBe('true');
  expect(JSON.stringify(answer.body)).toBe(JSON.stringify(first.body));
}

async function messagesOf(id: string): Promise<ShownMessage[]> {
  return dataOf(await posthorn.api.get(`/api/v1/webhook-messages?webhookId=${id}`));
}

describe('Idempotency-Key · a repeated request', () => {
  it('gets the first response again, is marked as a replay, and sends nothing', async () => {
    const own = await make.webhook({ url: receiver.url });
    const body = `{"webhookId":"${own.id}","payload":{"n": 12345678901234567890}}`;
    const key = randomUUID();
    const first = await post(key, body);
    const { id, deliveries } = dataOf<ShownMessage>(first, 202);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    await make.deliveryOnce('delivered', String(deliveries[0]?.id));
    expectReplay(await post(key, body), first);
    expectReplay(await post(key, body, '/api/v1/webhook-messages'), first);
    expect((await messagesOf(own.id)).map((message) => message.id)).toEqual([id]);
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('sent a hundred times at once makes one message: each gets the first response or 409', async () => {
    const own = await make.webhook({ url: receiver.url });
    const key = randomUUID();
    const body = { webhookId: own.id, payload: { at: 'once' } };
    const answers = await Promise.all(Array.from({ length: 100 }, () => post(key, body)));
    const accepted = answers.filter(({ status }) => status === 202);
    for (const answer of answers.filter(({ status }) => status !== 202)) {
      expectFailure(answer, 409, 'idempotency_key_running');
    }
    const bodies = new Set(accepted.map((answer) => JSON.stringify(answer.body)));
    const originals = accepted.filter(({ headers }) => !headers.has('idempotency-replayed'));
    expect([bodies.size, originals.length]).toEqual([1, 1]);
    const [message] = await messagesOf(own.id);
    expect(await messagesOf(own.id)).toHaveLength(1);
    await make.deliveryOnce('delivered', String(message?.deliveries[0]?.id));
    expect(receiver.of(String(message?.id))).toHaveLength(1);
  });

  it('is recognised by a gateway that was started after the first request', async () => {
    const key = randomUUID();
    const first = await post(key);
    await posthorn.gateway.stop();
    const { PORT } = posthorn.env;
    posthorn.gateway = await posthorn.start('gateway', { PORT: String(PORT) });
    expectReplay(await post(key), first);
  });

  it('gets the first response also when the app was deleted in between', async () => {
    const { id: appId } = await make.app();
    await make.webhook({ url: receiver.url, appId });
    const key = randomUUID();
    const first = await post(key, { appId, payload: {} });
    dataOf(first, 202);
    expectDeleted(await withCompanyId(posthorn).delete(`/apps/${appId}`));
    expectReplay(await post(key, { appId, payload: {} }), first);
    expectNotFound(await post(randomUUID(), { appId, payload: {} }));
  });
});

describe('Idempotency-Key · another body', () => {
  it.each([
    ['another payload', () => ({ webhookId, payload: { n: 2 } })],
    ['another field', () => ({ webhookId, payload: { n: 1 }, eventType: 'a' })],
    ['the other spelling', () => ({ webhook_id: webhookId, payload: { n: 1 } })],
    ['one space more', () => `{"webhookId":"${webhookId}","payload":{"n":1}} `],
  ])('with %s is refused with 422, and the key stays with the first', async (_what, bodyOf) => {
    const key = randomUUID();
    const first = await post(key);
    expectFailure(await post(key, bodyOf()), 422, 'idempotency_key_reused');
    expectReplay(await post(key), first);
  });
});

describe('Idempotency-Key · scope', () => {
  it('another company may use the same key [security]', async () => {
    const { api } = await createCompany(posthorn, 'Other');
    const theirs = createResources(api);
    const hook = await theirs.webhook({ url: receiver.url });
    const key = randomUUID();
    const ours = dataOf<ShownMessage>(await post(key), 202);
    const body = { webhookId: hook.id, payload: { n: 1 } };
    const answer = await api.post('/webhook-messages', body, { 'idempotency-key': key });
    expect(dataOf<ShownMessage>(answer, 202).id).not.toBe(ours.id);
    expect(answer.headers.get('idempotency-replayed')).toBeNull();
  });

  it('upper and lower case are different keys', async () => {
    const key = `key-${randomUUID()}`;
    const first = dataOf<ShownMessage>(await post(key), 202);
    const second = dataOf<ShownMessage>(await post(key.toUpperCase()), 202);
    expect(second.id).not.toBe(first.id);
  });

  it('a refused request does not use the key up', async () => {
    const key = randomUUID();
    expectInvalid(await post(key, { webhookId, payload: 1 }), 'payload');
    expectNotFound(await post(key, { webhookId: 'wh_unknown', payload: {} }));
    const accepted = await post(key);
    dataOf(accepted, 202);
    expect(accepted.headers.get('idempotency-replayed')).toBeNull();
  });

  it('the header is ignored by all other operations', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const make2 = () => posthorn.api.post('/projects', { name: 'Twice' }, headers);
    const ids = [await make2(), await make2()].map((each) => dataOf<{ id: string }>(each, 201).id);
    expect(new Set(ids).size).toBe(2);
  });
});

describe('Idempotency-Key · allowed values', () => {
  it.each(['x', 'a b~!"\\', 'x'.repeat(255)])('%j is accepted', async (key) => {
    dataOf(await post(key), 202);
  });

  it.each(['', 'x'.repeat(256), 'schlüssel', 'tab\there'])('%j is refused', async (key) => {
    expectInvalid(await post(key), 'Idempotency-Key');
  });
});
