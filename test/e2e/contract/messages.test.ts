import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHmac, randomUUID } from 'node:crypto';
import type { ApiAnswer, ApiClient } from '../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';
import { createCompany, withCompanyId } from '../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';

describe('Messages', () => {
  const MASKED = expect.stringMatching(/^(Basic )?\*+$/);

  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

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
        tags: [],
        externalId: null,
        orderingKey: null,
        deliverAt: null,
        expiresAt: null,
        retentionDays: null,
        noTargetReason: null,
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
        deliveries: [
          { id: anId('dlv'), webhookId: webhook.id, status: 'pending', attemptCount: 0 },
        ],
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

  describe('Messages · tags and externalId', () => {
    const MESSAGES = '/api/v1/webhook-messages';

    const idsWith = async (filter: Record<string, string>): Promise<string[]> => {
      const answer = await posthorn.api.get(
        `${MESSAGES}?${new URLSearchParams(filter).toString()}`,
      );
      return dataOf<ShownMessage[]>(answer).map(({ id }) => id);
    };

    it('are shown in every answer, and find the message', async () => {
      const { id: appId } = await make.app();
      const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
      const [tag, externalId] = [`é ${randomUUID()}`, `own/${randomUUID()}`];
      const first = await make.message({ webhookId, tags: [tag, 'b'], externalId });
      const second = await make.message({ appId, tags: ['c', tag] });
      const third = await make.message({ webhookId, external_id: externalId, tags: [] });
      expect([first, second, third]).toMatchObject([
        { tags: [tag, 'b'], externalId },
        { tags: ['c', tag], externalId: null },
        { tags: [], externalId },
      ]);
      const got = await posthorn.api.get(`${MESSAGES}/${first.id}`);
      expect(dataOf(got)).toMatchObject({ tags: [tag, 'b'], externalId });
      const listed = await posthorn.api.get(`${MESSAGES}?webhookId=${webhookId}`);
      expect(dataOf(listed)).toMatchObject([
        { tags: [], externalId },
        { tags: ['c', tag], externalId: null },
        { tags: [tag, 'b'], externalId },
      ]);
      expect(await idsWith({ tag })).toEqual([second.id, first.id]);
      expect(await idsWith({ externalId })).toEqual([third.id, first.id]);
      expect(await idsWith({ external_id: externalId, tag })).toEqual([first.id]);
      expect(await idsWith({ tag, appId })).toEqual([second.id]);
      expect(await idsWith({ tag, webhookId, to: first.createdAt })).toContain(first.id);
      expect(await idsWith({ tag: tag.slice(0, -1) })).toEqual([]);
      expect(await idsWith({ externalId: tag })).toEqual([]);
    });

    it('are listed page by page', async () => {
      const { id: webhookId } = await make.webhook({ url: receiver.url });
      const tag = randomUUID();
      const made: string[] = [];
      for (let n = 0; n < 5; n += 1) made.push((await make.message({ webhookId, tags: [tag] })).id);
      const read: string[][] = [];
      let next: string | null = '';
      while (next !== null) {
        const page = await posthorn.api.get(`${MESSAGES}?tag=${tag}&limit=2${next}`);
        read.push(dataOf<ShownMessage[]>(page).map(({ id }) => id));
        const { nextCursor } = page.body;
        next = typeof nextCursor === 'string' ? `&cursor=${nextCursor}` : null;
      }
      expect(read.map(({ length }) => length)).toEqual([2, 2, 1]);
      expect(read.flat()).toEqual(made.reverse());
    });

    it('are in the first response that a repeat gets again', async () => {
      const { id: webhookId } = await make.webhook({ url: receiver.url });
      const body = { webhookId, payload: {}, tags: ['a'], externalId: 'own' };
      const key = { 'idempotency-key': randomUUID() };
      const first = await posthorn.api.post('/webhook-messages', body, key);
      const again = await posthorn.api.post('/webhook-messages', body, key);
      expect(dataOf(again, 202)).toEqual(dataOf(first, 202));
      expect(dataOf(again, 202)).toMatchObject({ tags: ['a'], externalId: 'own' });
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

    it('names each field that is missing or wrong', async () => {
      expectInvalid(await post({ payload: [], tags: ['a', ''] }), 'appId', 'payload', 'tags.1');
    });
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

    it('takes webhooks into account that were created or deleted just before', async () => {
      const { id: appId } = await make.app();
      await make.message({ appId });
      const { id } = await make.webhook({ url: receiver.url, appId });
      expect((await make.message({ appId })).deliveries).toHaveLength(1);
      await posthorn.api.delete(`/webhooks/${id}`);
      expect((await make.message({ appId })).deliveries).toHaveLength(0);
    });
  });
});

describe('Idempotency keys', () => {
  let posthorn: OwnGateway;
  const receiver = useReceiver();
  let make: Resources;
  let webhookId: string;

  beforeAll(async () => {
    posthorn = await joinWithGateway('contract');
    make = createResources(posthorn.api);
    ({ id: webhookId } = await make.webhook({ url: receiver.url }));
  }, 120_000);

  afterAll(async () => {
    await posthorn.stop();
  });

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

    it('a key of another operation is another key', async () => {
      const key = randomUUID();
      const create = () =>
        posthorn.api.post('/projects', { name: 'Twice' }, { 'idempotency-key': key });
      const project = dataOf(await create(), 201);
      const accepted = await post(key);
      dataOf(accepted, 202);
      expect(accepted.headers.get('idempotency-replayed')).toBeNull();
      expect(dataOf(await create(), 201)).toEqual(project);
    });
  });

  describe('Idempotency-Key · allowed values', () => {
    it('have at most 255 characters', async () => {
      dataOf(await post('x'.repeat(255)), 202);
      expectInvalid(await post('x'.repeat(256)), 'Idempotency-Key');
    });
  });
});

describe('Versioning', () => {
  const WEBHOOK_URL = 'https://example.com/hook';

  const { posthorn } = useCompany('contract');
  let api: ApiClient;

  beforeAll(() => {
    api = withCompanyId(posthorn);
  });

  interface Made {
    id: string;
  }

  it.each(['', '/api/v1'])('serves every resource under "%s" (C1.1)', async (prefix) => {
    const create = async (path: string, body: object, status = 201): Promise<string> =>
      dataOf<Made>(await api.post(prefix + path, body), status).id;
    const projectId = await create('/projects', { name: 'Project' });
    const appId = await create('/apps', { name: 'App', projectId });
    const webhookId = await create('/webhooks', { url: WEBHOOK_URL, appId, disabled: true });
    await create('/webhook-messages', { webhookId, payload: {} }, 202);
    const one = [`/webhooks/${webhookId}`, `/apps/${appId}`, `/projects/${projectId}`];
    for (const path of one) {
      expect(dataOf<Made>(await api.get(prefix + path)).id).toBe(path.split('/')[2]);
      expect(dataOf(await api.put(prefix + path, { name: 'New' }))).toMatchObject({
        name: 'New',
      });
    }
    for (const path of ['/projects', `/apps?projectId=${projectId}`, `/webhooks?appId=${appId}`]) {
      expect(dataOf<Made[]>(await api.get(prefix + path)).length).toBeGreaterThan(0);
    }
    for (const path of one) expectDeleted(await api.delete(prefix + path));
  });

  it.each([
    ['GET', '/webhook-messages/msg_1'],
    ['GET', '/webhook-messages/msg_1/deliveries'],
    ['GET', '/deliveries/dlv_1'],
    ['POST', '/deliveries/dlv_1/resend'],
    ['POST', '/webhooks/wh_1/resend-failed'],
    ['POST', '/apps/app_1/resend-failed'],
    ['POST', '/webhooks/wh_1/test'],
    ['POST', '/webhooks/wh_1/rotate-secret'],
    ['GET', '/webhooks/wh_1/health'],
    ['GET', '/resends/rsnd_1'],
    ['GET', '/api-keys'],
    ['POST', '/api-keys'],
    ['DELETE', '/api-keys/key_1'],
  ])('%s %s is served under /api/v1 only (C1.3)', async (method, path) => {
    const body = method === 'POST' ? {} : undefined;
    expectFailure(await api.request(method, path, body), 404, 'route_not_found');
    const answer = await api.request(method, `/api/v1${path}`, body);
    expect(answer.body.code).not.toBe('route_not_found');
    expect(answer.status).toBeLessThan(500);
  });

  it('GET /webhook-messages is served under /api/v1 only; without it, only POST is (C1.3)', async () => {
    expectFailure(await api.get('/webhook-messages'), 405, 'method_not_allowed');
    dataOf(await api.get('/api/v1/webhook-messages'));
  });

  it.each(['/PROJECTS', '/projects/', '/Api/v1/projects', '/api/v1/projects/'])(
    'returns 404 for %s: paths match exactly (C1.4)',
    async (path) => {
      expectFailure(await api.get(path), 404, 'route_not_found');
    },
  );
});
