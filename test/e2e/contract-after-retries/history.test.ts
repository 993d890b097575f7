import { beforeAll, describe, expect, it } from '@jest/globals';
import { attemptIdOf } from '@posthorn/domain/ids.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createOneOfEach, type Ids, unknownLike } from '../../support/api/one-of-each.ts';
import type { ShownDelivery, ShownMessage } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('The list of messages', () => {
  const MESSAGES = '/api/v1/webhook-messages';

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  const list = (query: string): Promise<ApiAnswer> => posthorn.api.get(`${MESSAGES}?${query}`);
  const idsOf = async (query: string): Promise<string[]> =>
    dataOf<ShownMessage[]>(await list(query)).map(({ id }) => id);

  /** An app with a webhook that succeeds, one that fails and one that is disabled. */
  let appId: string;
  let good: string;
  let bad: string;
  let off: string;
  /** Messages by their final status. */
  let delivered: ShownMessage;
  let exhausted: ShownMessage;
  let cancelled: ShownMessage;
  let mixed: ShownMessage;

  beforeAll(async () => {
    receiver.answerWith((response, received) => {
      if (received.path === '/hook/bad') {
        response.writeHead(503, { 'x-request-id': 'r-1', 'set-cookie': 'a=hush', server: 's' });
        response.end(`sorry ${'x'.repeat(5_000)}`);
      } else response.writeHead(204).end();
    });
    ({ id: appId } = await make.app());
    ({ id: good } = await make.webhook({ url: receiver.url, appId, eventTypes: ['x'] }));
    ({ id: bad } = await make.webhook({ url: `${receiver.url}/bad`, appId }));
    ({ id: off } = await make.webhook({ url: receiver.url, appId, disabled: true }));
    delivered = await make.message({ webhookId: good });
    exhausted = await make.message({ webhookId: bad });
    cancelled = await make.message({ webhookId: off });
    mixed = await make.message({ appId, eventType: 'x' });
    await eventually('final states', async () => {
      const shown = dataOf<ShownMessage[]>(await list(`webhookId=${bad}`));
      return shown.every(({ status }) => status === 'exhausted');
    });
    await make.deliveryOnce('delivered', String(delivered.deliveries[0]?.id));
  });

  describe('History · GET /api/v1/webhook-messages', () => {
    it('lists messages newest first, each with its status and its deliveries', async () => {
      const [newest, ...rest] = dataOf<ShownMessage[]>(await list(''));
      expect(rest.map(({ id }) => id)).toEqual([cancelled.id, exhausted.id, delivered.id]);
      expect(newest).toEqual({
        id: mixed.id,
        appId,
        eventType: 'x',
        status: 'exhausted',
        delivered: false,
        payload: '{"n":1}',
        tags: [],
        externalId: null,
        orderingKey: null,
        deliverAt: null,
        expiresAt: null,
        retentionDays: null,
        noTargetReason: null,
        createdAt: mixed.createdAt,
        updatedAt: aTime,
        deliveries: [
          { id: anId('dlv'), webhookId: good, status: 'delivered', attemptCount: 1 },
          { id: anId('dlv'), webhookId: bad, status: 'exhausted', attemptCount: 2 },
          { id: anId('dlv'), webhookId: off, status: 'cancelled', attemptCount: 0 },
        ],
      });
    });

    it.each<[string, () => string, () => ShownMessage[]]>([
      ['appId', () => `appId=${appId}`, () => [mixed]],
      ['app_id', () => `app_id=${appId}`, () => [mixed]],
      ['webhookId', () => `webhookId=${bad}`, () => [mixed, exhausted]],
      ['status delivered', () => 'status=delivered', () => [delivered]],
      ['status exhausted', () => 'status=exhausted', () => [mixed, exhausted]],
      ['status cancelled', () => 'status=cancelled', () => [cancelled]],
      ['status pending', () => 'status=pending', () => []],
      ['two filters', () => `webhookId=${bad}&appId=${appId}`, () => [mixed]],
      ['two that exclude each other', () => `webhookId=${bad}&status=cancelled`, () => []],
      ['status and app', () => `status=exhausted&appId=${appId}`, () => [mixed]],
      ['event type', () => 'eventType=x', () => [mixed]],
      ['event type and status', () => 'eventType=x&status=delivered', () => []],
      ['event type and webhook', () => `eventType=x&webhookId=${bad}`, () => [mixed]],
      ['an unknown app', () => 'appId=app_unknown', () => []],
    ])('filters by %s', async (_what, query, expected) => {
      expect(await idsOf(query())).toEqual(expected().map(({ id }) => id));
    });

    it('includes a message that was created exactly at from or at to', async () => {
      const at = exhausted.createdAt;
      const shifted = (ms: number) => new Date(Date.parse(at) + ms).toISOString();
      const own = `webhookId=${bad}`;
      expect(await idsOf(`${own}&from=${at}`)).toEqual([mixed.id, exhausted.id]);
      expect(await idsOf(`${own}&to=${at}`)).toEqual([exhausted.id]);
      expect(await idsOf(`${own}&from=${at}&to=${at}`)).toEqual([exhausted.id]);
      expect(await idsOf(`${own}&from=${shifted(1)}`)).not.toContain(exhausted.id);
      expect(await idsOf(`${own}&to=${shifted(-1)}`)).toEqual([]);
      const offset = encodeURIComponent(`${at.slice(0, -1)}+00:00`);
      expect(await idsOf(`${own}&to=${offset}&status=exhausted`)).toEqual([exhausted.id]);
    });

    it.each(['', `&status=exhausted`, '&status=cancelled'])(
      'is paged by limit and cursor without a gap or a repeat%s',
      async (filter) => {
        const all = await idsOf(`limit=100${filter}`);
        const seen: string[] = [];
        let cursor: string | null = '';
        while (cursor !== null) {
          const next: string = cursor && `&cursor=${cursor}`;
          const answer = await list(`limit=1${filter}${next}`);
          seen.push(...dataOf<ShownMessage[]>(answer).map(({ id }) => id));
          cursor = answer.body.nextCursor ?? null;
        }
        expect(seen).toEqual(all);
        expect((await list(`limit=100${filter}`)).body.nextCursor).toBeNull();
      },
    );

    it('returns 50 messages by default', async () => {
      const { id: webhookId } = await make.webhook({ url: receiver.url, disabled: true });
      await Promise.all(Array.from({ length: 51 }, () => make.message({ webhookId })));
      const answer = await list(`webhookId=${webhookId}`);
      expect(answer.body.data).toHaveLength(50);
      expect(
        await idsOf(`webhookId=${webhookId}&cursor=${answer.body.nextCursor ?? ''}`),
      ).toHaveLength(1);
    });

    it('names each parameter that is wrong or unknown', async () => {
      const answer = await list('limit=0&cursor=x&status=done&to=2026-01-31&skip=1');
      expectInvalid(answer, 'cursor', 'limit', 'skip', 'status', 'to');
    });
  });

  describe('History · GET /api/v1/webhook-messages/{id}', () => {
    it('returns the message in its current state, with the fields of its creation', async () => {
      const shown = dataOf<ShownMessage>(await posthorn.api.get(`${MESSAGES}/${exhausted.id}`));
      expect(shown).toEqual({
        ...exhausted,
        appId: null,
        eventType: null,
        status: 'exhausted',
        updatedAt: aTime,
        deliveryAttempt: {
          id: anId('att'),
          processed: true,
          resend: false,
          statusCode: 503,
          response: expect.stringMatching(/^sorry x+$/),
          headers: exhausted.headers,
          createdAt: aTime,
          updatedAt: aTime,
        },
        deliveries: [{ ...exhausted.deliveries[0], status: 'exhausted', attemptCount: 2 }],
      });
    });

    it.each(['', '/deliveries'])('returns 404 for an unknown message%s', async (rest) => {
      expectNotFound(await posthorn.api.get(`${MESSAGES}/msg_${'0'.repeat(26)}${rest}`));
    });
  });
});

describe('The deliveries of a message', () => {
  const MESSAGES = '/api/v1/webhook-messages';

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let good: string;
  let bad: string;
  let off: string;
  /** To the failing webhook. */
  let exhausted: ShownMessage;
  /** To all three webhooks. */
  let mixed: ShownMessage;

  beforeAll(async () => {
    receiver.answerWith((response, received) => {
      if (received.path === '/hook/bad') {
        response.writeHead(503, { 'x-request-id': 'r-1', 'set-cookie': 'a=hush', server: 's' });
        response.end(`sorry ${'x'.repeat(5_000)}`);
      } else response.writeHead(204).end();
    });
    const { id: appId } = await make.app();
    ({ id: good } = await make.webhook({ url: receiver.url, appId }));
    ({ id: bad } = await make.webhook({ url: `${receiver.url}/bad`, appId }));
    ({ id: off } = await make.webhook({ url: receiver.url, appId, disabled: true }));
    exhausted = await make.message({ webhookId: bad });
    mixed = await make.message({ appId });
    await eventually('final states', async () => {
      const shown = await posthorn.api.get(`${MESSAGES}?webhookId=${bad}`);
      return dataOf<ShownMessage[]>(shown).every(({ status }) => status === 'exhausted');
    });
  }, 120_000);

  describe('History · GET /api/v1/webhook-messages/{id}/deliveries', () => {
    it('lists the deliveries, newest first, page by page', async () => {
      const read = (query = '') => posthorn.api.get(`${MESSAGES}/${mixed.id}/deliveries${query}`);
      const all = await read();
      const shown = dataOf<ShownDelivery[]>(all);
      expect(shown.map(({ webhookId }) => webhookId)).toEqual([off, bad, good]);
      for (const delivery of shown) expect(await make.delivery(delivery.id)).toEqual(delivery);
      expect(all.body.nextCursor).toBeNull();
      const first = await read('?limit=2');
      expect(first.body.data).toEqual(shown.slice(0, 2));
      const second = await read(`?limit=2&cursor=${first.body.nextCursor ?? ''}`);
      expect([second.body.data, second.body.nextCursor]).toEqual([shown.slice(2), null]);
      expectInvalid(await read('?limit=101&cursor=x&status=pending'), 'limit', 'cursor', 'status');
    });
  });

  describe('History · GET /api/v1/deliveries/{id}', () => {
    it('returns every attempt with its outcome, and only safe parts of the response', async () => {
      const { id = '' } = exhausted.deliveries[0] ?? {};
      const shown = await make.delivery(id);
      const attempt = (number: number) => ({
        id: anId('att'),
        number,
        processed: true,
        resend: false,
        outcome: 'http_5xx',
        statusCode: 503,
        response: `sorry ${'x'.repeat(4_090)}`,
        failureReason: null,
        durationMs: expect.any(Number),
        headers: exhausted.headers,
        responseHeaders: expect.arrayContaining([{ key: 'x-request-id', value: 'r-1' }]),
        createdAt: aTime,
        updatedAt: aTime,
      });
      expect(shown).toEqual({
        id,
        messageId: exhausted.id,
        webhookId: bad,
        status: 'exhausted',
        reason: null,
        attemptCount: 2,
        nextAttemptAt: null,
        waiting: null,
        waitingSince: null,
        attempts: [attempt(1), attempt(2)],
        createdAt: exhausted.createdAt,
        updatedAt: aTime,
      });
      expect(JSON.stringify(shown)).not.toContain('hush');
      expect(exhausted.deliveryAttempt?.id).toBe(shown.attempts[0]?.id);
    });

    it('returns 404 for an unknown id', async () => {
      expectNotFound(await posthorn.api.get(`/api/v1/deliveries/dlv_${'0'.repeat(26)}`));
    });
  });
});

describe('The overview', () => {
  /** With their steps. */
  const RANGES = [
    ['1h', 60],
    ['24h', 24],
    ['7d', 168],
    ['30d', 30],
  ] as const;

  interface Overview {
    failed: number;
    delivered: number;
    accepted: number;
    pending: number;
    series: { failed: number }[];
    worst: { webhookId: string; failed: number }[];
  }

  const { posthorn } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let company: ApiClient;
  let ours: Ids;
  let theirs: Ids;
  /** With a key of our app. */
  let limited: ApiClient;

  beforeAll(async () => {
    receiver.answerWith(failing(99));
    const { baseUrl, apiKey, companyId: companyid } = posthorn;
    company = createApiClient(baseUrl, apiKey, { companyid });
    ours = await createOneOfEach(company, receiver.url, 'ours');
    theirs = await createOneOfEach(company, receiver.url, 'theirs');
    const created = await company.post('/api/v1/api-keys', { name: 'ours', appId: ours.appId });
    limited = createApiClient(baseUrl, dataOf<{ key: string }>(created, 201).key);
    // Two attempts and a resend of each. What is counted for the company, each app and each webhook is written apart.
    const asked = [
      ...RANGES.map(([range]) => `?range=${range}`),
      ...[ours, theirs].flatMap(({ appId, webhookId }) => [
        `?appId=${appId}`,
        `?webhookId=${webhookId}`,
      ]),
    ];
    await eventually('the counts', async () => {
      const all = await Promise.all(asked.map((query) => overviewOf(company, query)));
      return all.every(({ accepted, failed, pending, worst }, n) => {
        const apps = n < RANGES.length ? 2 : 1;
        const counted = [accepted, failed, pending, ...worst.map((each) => each.failed)];
        return counted.join() === [apps, 3 * apps, 0, ...Array<number>(apps).fill(3)].join();
      });
    });
  }, 180_000);

  const read = (api: ApiClient, query = '') => api.get(`/api/v1/overview${query}`);
  const overviewOf = async (api: ApiClient, query = '') => dataOf<Overview>(await read(api, query));

  describe('The overview', () => {
    it.each(RANGES)('of %s counts attempts in %d steps', async (range, steps) => {
      const overview = await overviewOf(company, `?range=${range}`);
      expect(overview).toMatchObject({
        asOf: aTime,
        accepted: 2,
        delivered: 0,
        failed: 6,
        pending: 0,
        oldestPendingAt: null,
        openCircuits: expect.any(Number),
        latencyMs: { p50: expect.any(Number), p99: expect.any(Number) },
      });
      expect(overview.series).toHaveLength(steps);
      expect(overview.series.reduce((sum, { failed }) => sum + failed, 0)).toBe(6);
      expect(overview.worst.map(({ webhookId }) => webhookId).sort()).toEqual(
        [ours.webhookId, theirs.webhookId].sort(),
      );
      expect(overview.worst[0]).toMatchObject({
        url: expect.stringContaining(receiver.url),
        successRatio: 0,
        failed: 3,
        reason: 'http_5xx',
        since: aTime,
      });
    });

    it('covers one app or one webhook on request, or for a key of one app', async () => {
      const { appId, webhookId } = ours;
      const answers = [
        await overviewOf(company, `?appId=${appId}`),
        await overviewOf(company, `?webhookId=${webhookId}`),
        await overviewOf(limited),
      ];
      for (const { failed, worst } of answers) {
        expect([failed, worst.map((each) => each.webhookId)]).toEqual([3, [webhookId]]);
      }
      expectFailure(await read(limited, `?appId=${theirs.appId}`), 404, 'not_found');
      expectFailure(await read(company, `?appId=${unknownLike(appId)}`), 404, 'not_found');
      expectInvalid(await read(company, `?appId=${appId}&webhookId=${webhookId}`), 'appId');
    });
  });

  describe('The failures', () => {
    const list = (api: ApiClient, query = '') => api.get(`/api/v1/failures${query}`);

    it('are grouped by webhook and outcome', async () => {
      const groups = dataOf<{ webhookId: string }[]>(await list(company));
      expect(groups).toHaveLength(2);
      expect(groups).toContainEqual({
        webhookId: ours.webhookId,
        url: `${receiver.url}/ours`,
        appId: ours.appId,
        outcome: 'http_5xx',
        count: 3,
        firstAt: aTime,
        lastAt: aTime,
      });
    });

    it('cover one app on request, or for a key of one app', async () => {
      for (const answer of [await list(company, `?appId=${ours.appId}`), await list(limited)]) {
        expect(dataOf<object[]>(answer)).toMatchObject([{ webhookId: ours.webhookId }]);
      }
      expectFailure(await list(limited, `?appId=${theirs.appId}`), 404, 'not_found');
      const later = new Date(Date.now() + 7_200_000).toISOString();
      expect(dataOf<object[]>(await list(company, `?since=${later}`)).length).toBeLessThan(3);
    });
  });

  describe('The open circuits', () => {
    it('cover one app on request, and return 404 for unknown apps', async () => {
      const list = (api: ApiClient, query = '') => api.get(`/api/v1/circuits${query}`);
      expect(dataOf(await list(company, `?appId=${ours.appId}`))).toEqual(expect.any(Array));
      expectFailure(await list(limited, `?appId=${theirs.appId}`), 404, 'not_found');
      expectFailure(await list(company, `?appId=${unknownLike(ours.appId)}`), 404, 'not_found');
    });
  });

  describe('To find an id', () => {
    const find = (api: ApiClient, id: string) => api.get(`/api/v1/find?id=${id}`);

    it('returns the kind and the owner of the id', async () => {
      const { projectId, appId, webhookId, messageId, deliveryId, resendId, keyId } = ours;
      const attemptId = attemptIdOf(deliveryId, 2);
      const expected = [
        { kind: 'project', id: projectId },
        { kind: 'app', id: appId, appId },
        { kind: 'webhook', id: webhookId, appId, webhookId },
        { kind: 'message', id: messageId, appId, messageId },
        { kind: 'delivery', id: deliveryId, appId, messageId, deliveryId, webhookId },
        { kind: 'attempt', id: attemptId, appId, messageId, deliveryId, webhookId },
        { kind: 'resend', id: resendId, webhookId },
        { kind: 'api_key', id: keyId },
      ];
      for (const found of expected) expect(dataOf(await find(company, found.id))).toEqual(found);
    });

    it('returns a cancellation, to its own app alone', async () => {
      const cancel = (appId: string) => company.post('/api/v1/deliveries/cancel', { appId });
      const [own, other] = [await cancel(ours.appId), await cancel(theirs.appId)];
      const { id } = dataOf<{ id: string }>(own, 202);
      const found = { kind: 'cancellation', id, appId: ours.appId };
      expect(dataOf(await find(limited, id))).toEqual(found);
      const { id: othersId } = dataOf<{ id: string }>(other, 202);
      expectFailure(await find(limited, othersId), 404, 'not_found');
    });

    it('finds nothing of others, and nothing that does not exist', async () => {
      const ids = Object.values(theirs);
      const ofOurs = [...Object.values(ours), attemptIdOf(ours.deliveryId, 1)];
      for (const id of [...ids, attemptIdOf(theirs.deliveryId, 1)]) {
        expectFailure(await find(limited, id), 404, 'not_found');
      }
      const unknown = [
        ...ofOurs.map(unknownLike),
        attemptIdOf(ours.deliveryId, 9),
        'x',
        '_',
        'att_',
      ];
      for (const id of unknown) expectFailure(await find(company, id), 404, 'not_found');
    });
  });
});
