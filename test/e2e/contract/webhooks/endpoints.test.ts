import { beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook as Verifier, WebhookVerificationError } from 'standardwebhooks';
import { createApiClient } from '../../../support/api/api-client.ts';
import {
  aTime,
  dataOf,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownWebhook } from '../../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import { type Answer, failing, type Received } from '../../../support/receivers/receiver.ts';
import { eventually } from '../../../support/time/eventually.ts';

describe('The search for webhooks', () => {
  const { posthorn, make } = useCompany('contract');
  let appId: string;
  let otherId: string;
  /** The oldest first; the last one is of the other app. */
  const ids: string[] = [];

  beforeAll(async () => {
    ({ id: appId } = await make.app({ name: 'Orders' }));
    ({ id: otherId } = await make.app());
    for (const [of, path, name] of [
      [appId, 'Orders', 'First'],
      [appId, 'payments', 'Second'],
      [otherId, 'orders/late', 'Third'],
    ]) {
      const fields = { appId: of, url: `http://127.0.0.1:1/${String(path)}`, name };
      ids.push((await make.webhook(fields)).id);
    }
  }, 120_000);

  const find = (query: string, api = posthorn.api) => api.get(`/api/v1/find-webhooks${query}`);
  const idsOf = async (query: string, api = posthorn.api): Promise<string[]> =>
    dataOf<{ id: string }[]>(await find(query, api)).map(({ id }) => id);
  const keyOfOneApp = async () => {
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'One', appId });
    return createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
  };

  describe('Webhooks of all apps · GET /api/v1/find-webhooks', () => {
    it('are found by part of their URL or name, newest first, without secrets', async () => {
      const [first = '', second, third = ''] = ids;
      const found = await find('?text=oRDERS');
      expect(dataOf(found)).toEqual([
        expect.objectContaining({ id: third, appId: otherId }),
        {
          id: first,
          uid: null,
          url: 'http://127.0.0.1:1/Orders',
          name: 'First',
          eventTypes: [],
          disabled: false,
          held: null,
          appId,
          appName: 'Orders',
          projectId: null,
          environmentId: null,
          createdAt: aTime,
        },
      ]);
      expect(JSON.stringify(found.body)).not.toContain('whsec_');
      expect(await idsOf('?text=second')).toEqual([second]);
      expect(await idsOf('?text=refunds')).toEqual([]);
    });

    it('are found by their ids, of one app, and page by page', async () => {
      const [first = '', second = '', third = ''] = ids;
      expect(await idsOf(`?text=${second}`)).toEqual([second]);
      expect(await idsOf(`?ids=${first},wh_unknown,${third}`)).toEqual([third, first]);
      expect(await idsOf(`?appId=${appId}`)).toEqual([second, first]);
      expect(await idsOf(`?appId=${appId}&text=orders`)).toEqual([first]);
      const page = await find('?limit=2');
      expect(dataOf<{ id: string }[]>(page).map(({ id }) => id)).toEqual([third, second]);
      const last = await find(`?limit=2&cursor=${String(page.body.nextCursor)}`);
      expect(dataOf<{ id: string }[]>(last).map(({ id }) => id)).toEqual([first]);
      expect(last.body.nextCursor).toBeNull();
    });

    it('are found by an event type that they select, and by their project', async () => {
      const { id: projectId } = await make.project();
      const app = await make.app({ projectId });
      const fields = { appId: app.id, url: 'http://127.0.0.1:1/typed' };
      const typed = await make.webhook({ ...fields, eventTypes: ['order.*', 'refund'] });
      const all = await make.webhook(fields);
      const found = (eventType: string) => idsOf(`?projectId=${projectId}&eventType=${eventType}`);
      expect(await found('order.paid')).toEqual([all.id, typed.id]);
      expect(await found('order')).toEqual([all.id]);
      expect(await idsOf('?eventType=refund&limit=3')).toEqual([all.id, typed.id, ids[2]]);
      expect(await idsOf(`?projectId=${projectId}&text=typed`)).toEqual([all.id, typed.id]);
      expect(await idsOf(`?appId=${appId}&projectId=${projectId}`)).toEqual([]);
      await posthorn.api.delete(`/projects/${projectId}`);
    });

    it('show the project and the environment of a global webhook', async () => {
      const { id: projectId } = await make.project();
      const { id } = await make.webhook({
        url: 'http://127.0.0.1:1/global',
        projectId,
        environmentId: 'live',
      });
      const [found] = dataOf<object[]>(await find(`?ids=${id}`));
      expect(found).toMatchObject({ id, appId: null, projectId, environmentId: 'live' });
      await posthorn.api.delete(`/webhooks/${id}`);
    });

    it('returns to a key of one app only what belongs to this app', async () => {
      const [first = '', second, third = ''] = ids;
      const api = await keyOfOneApp();
      expect(await idsOf('', api)).toEqual([second, first]);
      expect(await idsOf(`?ids=${third}`, api)).toEqual([]);
      expectNotFound(await find(`?appId=${otherId}`, api));
    });

    it('refuse more than 100 ids', async () => {
      expectInvalid(await find(`?ids=${Array(101).fill('wh_1').join(',')}`), 'ids');
    });
  });

  describe('Counts of apps · GET /api/v1/app-counts', () => {
    it('counts webhooks and attempts of apps that exist', async () => {
      const counted = await posthorn.api.get(`/api/v1/app-counts?ids=${appId},${otherId},app_none`);
      const sorted = dataOf<{ appId: string }[]>(counted).sort((a, b) =>
        a.appId < b.appId ? -1 : 1,
      );
      expect(sorted).toEqual([
        { appId, webhooks: 2, succeeded: 0, failed: 0 },
        { appId: otherId, webhooks: 1, succeeded: 0, failed: 0 },
      ]);
    });

    it('returns to a key of one app only what belongs to this app', async () => {
      const api = await keyOfOneApp();
      const counted = await api.get(`/api/v1/app-counts?ids=${appId},${otherId}`);
      expect(dataOf<{ appId: string }[]>(counted).map((each) => each.appId)).toEqual([appId]);
    });

    it('refuse more than 20 ids', async () => {
      const answer = await posthorn.api.get(
        `/api/v1/app-counts?ids=${Array(21).fill(appId).join(',')}`,
      );
      expectInvalid(answer, 'ids');
    });
  });
});

describe('Test messages and health', () => {
  interface ShownHealth {
    circuit: string;
    successRate: number | null;
    latencyMs: { p50: number | null; p95: number | null };
    backlog: number;
  }

  const OK: Answer = (response) => response.writeHead(200).end('ok');

  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

  describe('Webhooks · POST /api/v1/webhooks/{id}/test', () => {
    it('sends a small test message and returns its delivery', async () => {
      receiver.answerWith(OK);
      const { id: webhookId } = await make.webhook({ url: receiver.url, eventTypes: ['x'] });
      const answer = await posthorn.api.post(`/api/v1/webhooks/${webhookId}/test`, undefined);
      const { id, messageId } = dataOf<ShownDelivery>(answer, answer.status);
      expect([200, 202]).toContain(answer.status);
      await make.deliveryOnce('delivered', id);
      const [got] = receiver.of(messageId);
      expect(JSON.parse(String(got?.body))).toBeInstanceOf(Object);
      expectNotFound(await posthorn.api.post('/api/v1/webhooks/wh_unknown/test', undefined));
    });
  });

  describe('Webhooks · GET /api/v1/webhooks/{id}/health', () => {
    const health = async (id: string): Promise<ShownHealth> =>
      dataOf(await posthorn.api.get(`/api/v1/webhooks/${id}/health`));
    const healthOnce = (what: string, id: string, check: (shown: ShownHealth) => boolean) =>
      eventually(what, async () => {
        const shown = await health(id);
        return check(shown) ? shown : null;
      });

    it('has no rate, no latency and no backlog for a webhook without messages', async () => {
      const { id } = await make.webhook({ url: receiver.url });
      expect(await health(id)).toEqual({
        circuit: 'closed',
        concurrency: { now: 16, floor: 1, ceiling: 1_000 },
        ratePerSecond: null,
        pausedUntil: null,
        held: null,
        probeAt: null,
        lastAttemptAt: null,
        successRate: null,
        backlog: 0,
        latencyMs: { p50: null, p95: null },
      });
    });

    it('shows the share of attempts that succeeded and how long they took', async () => {
      const { id: webhookId } = await make.webhook({ url: receiver.url });
      receiver.answerWith(OK);
      for (let n = 0; n < 3; n += 1) await make.message({ webhookId });
      await healthOnce('three successes', webhookId, ({ backlog }) => backlog === 0);
      receiver.answerWith(failing(99));
      await make.message({ webhookId });
      const shown = await healthOnce(
        'one failure',
        webhookId,
        ({ successRate }) => successRate !== 1,
      );
      expect(shown).toMatchObject({ circuit: 'closed', successRate: 0.75, backlog: 1 });
      const { p50, p95 } = shown.latencyMs;
      expect(Number(p50)).toBeGreaterThanOrEqual(0);
      expect(Number(p95)).toBeGreaterThanOrEqual(Number(p50));
    });

    it('returns 404 for an unknown id', async () => {
      expectNotFound(await posthorn.api.get(`/api/v1/webhooks/wh_${'0'.repeat(26)}/health`));
    });
  });
});

describe('Authentication at the endpoint', () => {
  const { make } = useCompany('contract');
  const receiver = useReceiver();

  /** Sends a message to the webhook and returns the request that its endpoint gets. */
  async function deliver({ id: webhookId }: ShownWebhook): Promise<Received> {
    const { id } = await make.message({ webhookId, payload: { order: 17, name: 'é' } });
    return eventually('the delivery', () => receiver.of(id)[0]);
  }

  const verify = (secret: string, { body, headers }: Received): unknown =>
    new Verifier(secret).verify(body.toString(), headers as Record<string, string>);

  describe('Each delivery', () => {
    it('is a POST of the payload as JSON to the path and query of the url, with the user agent of Posthorn', async () => {
      const webhook = await make.webhook({ url: `${receiver.url}/a%20b?c=d&e` });
      const { method, path, headers, body } = await deliver(webhook);
      expect([method, path, body.toString()]).toEqual([
        ...['POST', '/hook/a%20b?c=d&e', '{"order":17,"name":"é"}'],
      ]);
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'content-length': String(body.length),
        'user-agent': expect.stringMatching(/^Posthorn\/\d+\.\d+\.\d+/),
      });
      expect(headers.cookie).toBeUndefined();
    });

    it('carries the custom headers unchanged', async () => {
      const customHeaders = [
        { key: 'X-Tenant', value: 't-1' },
        { key: 'X-Empty', value: '' },
        { key: 'X-Latin', value: 'né' },
      ];
      const { headers } = await deliver(await make.webhook({ url: receiver.url, customHeaders }));
      expect(headers).toMatchObject({ 'x-tenant': 't-1', 'x-empty': '', 'x-latin': 'né' });
    });
  });

  describe('The attempts of a webhook with timeoutSeconds', () => {
    it('end after that time, while the service gives others 15 s', async () => {
      receiver.answerWith(() => undefined);
      const webhook = await make.webhook({ url: receiver.url, timeoutSeconds: 1 });
      const patient = await make.webhook({ url: receiver.url });
      const deliveryTo = async ({ id }: ShownWebhook): Promise<string> =>
        String((await make.message({ webhookId: id })).deliveries[0]?.id);
      const [waiting, ended] = [await deliveryTo(patient), await deliveryTo(webhook)];
      const { attempts } = await eventually('the attempt', async () => {
        const shown = await make.delivery(ended);
        return shown.attemptCount === 1 ? shown : null;
      });
      expect(attempts).toMatchObject([{ outcome: 'timeout', statusCode: null }]);
      expect(await make.delivery(waiting)).toMatchObject({ attemptCount: 0, status: 'pending' });
      receiver.answerWith((response) => response.writeHead(200).end('ok'));
    });
  });

  describe('Authenticating deliveries', () => {
    const METHODS: [string, object, (webhook: ShownWebhook, got: Received) => void][] = [
      [
        'basic',
        { authMethod: 'basic', basicAuthUsername: 'Zoë', basicAuthPassword: 'p:w' },
        (_webhook, { headers }) => {
          const expected = Buffer.from('Zoë:p:w').toString('base64');
          expect(headers.authorization).toBe(`Basic ${expected}`);
          expect(headers['x-service-signature']).toBeUndefined();
        },
      ],
      [
        'apiKey',
        { authMethod: 'apiKey', apiKey: 'k 1', apiKeyHeader: 'X-Their-Key' },
        (_webhook, { headers }) => {
          expect(headers['x-their-key']).toBe('k 1');
          expect(headers['x-service-signature']).toBeUndefined();
        },
      ],
    ];

    it.each(METHODS)(
      'by %s sends the credentials, and the signature verifies as a Standard Webhook',
      async (_, auth, check) => {
        const webhook = await make.webhook({ url: receiver.url, ...auth });
        const got = await deliver(webhook);
        check(webhook, got);
        expect(verify(webhook.secret, got)).toEqual({ order: 17, name: 'é' });
        expect(got.headers['webhook-id']).toMatch(/^msg_/);
        const other = await make.webhook({ url: receiver.url });
        expect(() => verify(other.secret, got)).toThrow(WebhookVerificationError);
        const changed = { ...got, body: Buffer.from(`${got.body.toString()} `) };
        expect(() => verify(webhook.secret, changed)).toThrow(WebhookVerificationError);
      },
    );
  });
});
