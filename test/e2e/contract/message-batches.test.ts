import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { anId, dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import type { ShownMessage } from '../../support/api/resources.ts';
import { createCompany } from '../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Result {
  index: number;
  status: 'accepted' | 'replayed' | 'failed';
  messageId?: string;
  deliveries?: number;
  code?: string;
  message?: string;
}

interface Results {
  accepted: number;
  replayed: number;
  failed: number;
  results: Result[];
}

const BATCH = '/api/v1/webhook-messages/batch';

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

const send = (messages: readonly (string | object)[], key?: string, api = posthorn.api) => {
  const texts = messages.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  const headers = key === undefined ? undefined : { 'idempotency-key': key };
  return api.post(BATCH, `{"messages":[${texts.join(',')}]}`, headers);
};
const resultsOf = (answer: ApiAnswer): Results => dataOf<Results>(answer, 202);
const idsOf = ({ results }: Results) => results.map(({ messageId = '' }) => messageId);
const statusesOf = ({ results }: Results) => results.map(({ status }) => status);
const bodiesOf = (messageIds: readonly string[]) =>
  messageIds.map((id) => receiver.of(id).map(({ body }) => body.toString()));
const listOf = async (appId: string): Promise<ShownMessage[]> =>
  dataOf<ShownMessage[]>(await posthorn.api.get(`/api/v1/webhook-messages?appId=${appId}`));

describe('Batches · POST /api/v1/webhook-messages/batch', () => {
  it('stores, signs and delivers each payload byte for byte, with ids in the order of the list', async () => {
    const { id: appId } = await make.app();
    for (let n = 0; n < 2; n += 1) await make.webhook({ url: receiver.url, appId });
    const payloads = [
      '{ "n":1.0, "big":12345678901234567890, "n":2 }',
      '{"text":"é \\u00e9 ] } , \\"","list":[[1],{"a":"]"}]}',
      '{}',
    ];
    const before = [...payloads, ...Array.from({ length: 200 }, (_, n) => `{"n": ${n}}`)];
    const found = resultsOf(
      await send(before.map((payload) => `{ "appId":"${appId}" , "payload":${payload}}`)),
    );
    expect([found.accepted, found.replayed, found.failed]).toEqual([203, 0, 0]);
    expect(found.results[1]).toEqual({
      index: 1,
      status: 'accepted',
      messageId: anId('msg'),
      deliveries: 2,
    });
    const ids = idsOf(found);
    expect(ids).toEqual([...ids].sort());
    await eventually('all arrive', () => bodiesOf(ids).every((each) => each.length === 2));
    expect(bodiesOf(ids)).toEqual(before.map((payload) => [payload, payload]));
    const shown = dataOf<ShownMessage>(
      await posthorn.api.get(`/api/v1/webhook-messages/${ids[0] ?? ''}`),
    );
    expect(shown.payload).toBe(payloads[0]);
  });

  it('has a result for each message: others are stored when one fails', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const { id: empty } = await make.app();
    const message = { webhookId, payload: { n: 1 }, tags: ['a'], externalId: 'own-1' };
    const found = resultsOf(
      await send([
        message,
        { appId: 'app_unknown', payload: {} },
        { app_id: empty, event_type: 'order.paid', payload: {} },
      ]),
    );
    expect(found).toMatchObject({
      accepted: 2,
      failed: 1,
      results: [
        { index: 0, status: 'accepted', deliveries: 1 },
        { index: 1, status: 'failed', code: 'not_found', message: 'There is no such app.' },
        { index: 2, status: 'accepted', deliveries: 0 },
      ],
    });
    const [id = ''] = idsOf(found);
    const shown = dataOf(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
    expect(shown).toMatchObject({ tags: ['a'], externalId: 'own-1' });
  });

  it('is 202 when every message fails', async () => {
    const found = resultsOf(await send([{ webhookId: 'wh_unknown', payload: {} }]));
    expect(found).toMatchObject({ accepted: 0, failed: 1, results: [{ code: 'not_found' }] });
  });

  it('stores nothing when a message is not valid, and names the place of each problem', async () => {
    const { id: appId } = await make.app();
    const good = { appId, payload: { n: 1 } };
    const deep = `{"appId":"${appId}","payload":{"a":${'['.repeat(64)}${']'.repeat(64)}}}`;
    expectInvalid(
      await send([
        good,
        { appId, payload: [] },
        { payload: {} },
        { appId, payload: {}, orderKey: 'k' },
        { appId, payload: {}, idempotencyKey: 'ä' },
        deep,
        { appId, payload: { text: 'x'.repeat(262_144) } },
      ]),
      'messages.1.payload',
      'messages.2.appId',
      'messages.3.orderKey',
      'messages.4.idempotencyKey',
      'messages.5.payload',
      'messages.6.payload',
    );
    expectFailure(
      await posthorn.api.post(BATCH, `{"messages":[${JSON.stringify(good)},]}`),
      400,
      'invalid_json',
    );
    expect(await listOf(appId)).toEqual([]);
  });

  it('takes 1 to 1,000 messages, in 1,048,576 bytes', async () => {
    const { id: appId } = await make.app();
    const message = { appId, payload: {} };
    expectInvalid(await send([]), 'messages');
    expectInvalid(await send(Array(1_001).fill(message)), 'messages');
    const found = resultsOf(await send(Array(1_000).fill(message)));
    expect(found.accepted).toBe(1_000);
    const ids = idsOf(found);
    expect(new Set(ids).size).toBe(1_000);
    expect(ids).toEqual([...ids].sort());
    const large = { appId, payload: { text: 'x'.repeat(262_000) } };
    const body = JSON.stringify({ messages: [large, large, large, large, message] });
    const filled = (bytes: number) => body.replace('{', `{${' '.repeat(bytes - body.length)}`);
    expectFailure(await posthorn.api.post(BATCH, filled(1_048_577 + 1_000)), 413, 'body_too_large');
    const three = JSON.stringify({ messages: [large, large, large, message] });
    const full = three.replace('{', `{${' '.repeat(1_048_576 - three.length)}`);
    expect(resultsOf(await posthorn.api.post(BATCH, full)).accepted).toBe(4);
  });

  it('replays each message that has been sent with its key, and tries the rest', async () => {
    const { id: appId } = await make.app();
    await make.webhook({ url: receiver.url, appId });
    const key = randomUUID();
    const first = [
      { appId, payload: { n: 1 } },
      { appId: 'app_unknown', payload: {} },
    ];
    const before = resultsOf(await send(first, key));
    expect(statusesOf(before)).toEqual(['accepted', 'failed']);
    const again = resultsOf(await send(first, key));
    expect(again).toMatchObject({ accepted: 0, replayed: 1, failed: 1 });
    expect(again.results[0]).toEqual({ ...before.results[0], status: 'replayed' });
    const longer = resultsOf(await send([...first, { appId, payload: { n: 3 } }], key));
    expect(statusesOf(longer)).toEqual(['replayed', 'failed', 'accepted']);
    const spaced = resultsOf(
      await send(
        first.map((each) => ` ${JSON.stringify(each)}\n`),
        key,
      ),
    );
    expect(statusesOf(spaced)).toEqual(['replayed', 'failed']);
    const changed = resultsOf(await send([{ appId, payload: { n: 2 } }], key));
    expect(changed.results).toMatchObject([{ status: 'failed', code: 'idempotency_key_reused' }]);
    await eventually('all arrive', async () => (await listOf(appId)).every((m) => m.delivered));
    expect(await listOf(appId)).toHaveLength(2);
  });

  it('shares its keys with single messages, and between the messages of one batch', async () => {
    const { id: appId } = await make.app();
    const [own, other] = [randomUUID(), randomUUID()];
    const message = (n: number, idempotencyKey: string) => ({
      appId,
      payload: { n },
      idempotencyKey,
    });
    const found = resultsOf(
      await send([message(1, own), message(1, own), message(2, own), message(3, other)]),
    );
    expect(found.results).toMatchObject([
      { status: 'accepted' },
      { status: 'replayed', messageId: idsOf(found)[0] },
      { status: 'failed', code: 'idempotency_key_reused' },
      { status: 'accepted' },
    ]);
    const single = (body: object, key: string) =>
      posthorn.api.post('/webhook-messages', body, { 'idempotency-key': key });
    expectFailure(await single({ appId, payload: { n: 1 } }, own), 422, 'idempotency_key_reused');
    // The bytes of the entry are those of the body: the same request.
    const key = randomUUID();
    const body = { appId, payload: { n: 4 } };
    const [id] = idsOf(resultsOf(await send([body], key)));
    const replay = await single(body, `${key}#0`);
    expect(replay.headers.get('idempotency-replayed')).toBe('true');
    expect(dataOf<ShownMessage>(replay, 202).id).toBe(id);
    dataOf(await single(body, `${key}#1`), 202);
    expect(statusesOf(resultsOf(await send([body, body], key)))).toEqual(['replayed', 'replayed']);
  });

  it('takes uids, and has the targets of each message as a single one has', async () => {
    const uid = `customer-${randomUUID()}`;
    const { id: appId } = await make.app({ uid });
    await make.webhook({ url: receiver.url, appId, eventTypes: ['order.paid'] });
    await make.webhook({ url: receiver.url, appId });
    const found = resultsOf(
      await send([
        { appId: `uid:${uid}`, payload: {}, eventType: 'order.paid' },
        { appId: `uid:${uid}`, payload: {} },
        { appId: `uid:${uid}-none`, payload: {} },
      ]),
    );
    expect(found.results).toMatchObject([
      { deliveries: 2 },
      { deliveries: 1 },
      { status: 'failed', code: 'not_found' },
    ]);
  });

  describe('[security]', () => {
    let other: ApiClient;

    beforeAll(async () => {
      other = (await createCompany(posthorn, 'Other')).api;
    });

    it('reaches nothing of another company', async () => {
      const { id: appId } = await make.app();
      const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
      const found = resultsOf(
        await send(
          [
            { webhookId, payload: {} },
            { appId, payload: {} },
          ],
          undefined,
          other,
        ),
      );
      expect(found.results).toMatchObject([{ code: 'not_found' }, { code: 'not_found' }]);
    });

    async function clientOf(appId: string): Promise<ApiClient> {
      const limits = { name: 'One app', appId, scopes: ['messages:write'] };
      const made = await posthorn.api.post('/api/v1/api-keys', limits);
      return createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
    }

    it('a batch with a key of one app takes no idempotency key of the company or another app', async () => {
      const [one, two] = [await make.app(), await make.app()];
      const senders = [
        { appId: one.id, api: await clientOf(one.id) },
        { appId: two.id, api: await clientOf(two.id) },
        { appId: one.id, api: posthorn.api },
      ];
      const key = randomUUID();
      const sendAll = async (): Promise<Results[]> => {
        const found: Results[] = [];
        for (const { appId, api } of senders) {
          const messages = [
            { appId, payload: {} },
            { appId, payload: {}, idempotencyKey: `order-${key}` },
          ];
          found.push(resultsOf(await send(messages, key, api)));
        }
        return found;
      };
      const first = await sendAll();
      expect(first.map(statusesOf)).toEqual(Array(3).fill(['accepted', 'accepted']));
      const again = await sendAll();
      expect(again.map(statusesOf)).toEqual(Array(3).fill(['replayed', 'replayed']));
      expect(again.map(idsOf)).toEqual(first.map(idsOf));
      const single = { 'idempotency-key': `order-${key}` };
      for (const { appId, api } of senders) {
        const other = await api.post('/webhook-messages', { appId, payload: { n: 1 } }, single);
        expectFailure(other, 422, 'idempotency_key_reused');
      }
    });

    it('a batch with a key of one app reaches nothing else', async () => {
      const { id: appId } = await make.app();
      const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
      const { id: foreign } = await make.webhook({ url: receiver.url });
      const confined = await clientOf(appId);
      const messages = [{ webhookId }, { appId }, { webhookId: foreign }, { appId: 'app_other' }];
      const found = resultsOf(
        await send(
          messages.map((each) => ({ ...each, payload: {} })),
          undefined,
          confined,
        ),
      );
      expect(statusesOf(found)).toEqual(['accepted', 'accepted', 'failed', 'failed']);
      const reader = dataOf<{ key: string }>(
        await posthorn.api.post('/api/v1/api-keys', { name: 'Reader', scopes: ['read'] }),
        201,
      );
      expectFailure(
        await send(
          [{ appId, payload: {} }],
          undefined,
          createApiClient(posthorn.baseUrl, reader.key),
        ),
        403,
        'insufficient_scope',
      );
    });
  });
});

const LIMIT = 30;

describe('The rate limit of a company', () => {
  let limited: OwnGateway;

  beforeAll(async () => {
    limited = await joinWithGateway('contract', { RATE_LIMIT_COMPANY_PER_MINUTE: String(LIMIT) });
  }, 120_000);

  afterAll(() => limited.stop());

  it('counts the messages of a batch, and refuses all of it beyond', async () => {
    const { api } = await createCompany(limited, 'Counted');
    const messages = (count: number) =>
      Array<object>(count).fill({ appId: 'app_unknown', payload: {} });
    const first = await send(messages(20), undefined, api);
    expect(resultsOf(first).failed).toBe(20);
    expect(first.headers.get('ratelimit')).toMatch(/^"company";r=10;/);
    const second = await send(messages(20), undefined, api);
    expectFailure(second, 429, 'rate_limited');
    expect(second.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(resultsOf(await send(messages(5), undefined, api)).failed).toBe(5);
  });

  it('lets through a batch that is larger than it, when nothing was counted before', async () => {
    const { api } = await createCompany(limited, 'Large');
    const messages = Array<object>(LIMIT * 2).fill({ appId: 'app_unknown', payload: {} });
    expect(resultsOf(await send(messages, undefined, api)).failed).toBe(LIMIT * 2);
    expectFailure(await send(messages, undefined, api), 429, 'rate_limited');
  });
});
