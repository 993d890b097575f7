import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectInvalid, expectNotFound } from '../../support/api/expect-answers.ts';
import { createResources, type ShownMessage } from '../../support/api/resources.ts';
import { ADMIN } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing, type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('A message that is sent to a webhook', () => {
  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();

  async function newWebhook(fields: object = {}) {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const { body } = await posthorn.api.post('/webhooks', { url: receiver.url, appId, ...fields });
    return body.data as { id: string; secret: string; authMethod: object };
  }

  async function firstRequest(messageId: string) {
    return eventually('the delivery', () => receiver.of(messageId)[0]);
  }

  it('arrives signed, and the Standard Webhooks library accepts the signature [security]', async () => {
    const webhook = await newWebhook();
    const { messageId } = await posthorn.api.send({ webhookId: webhook.id }, { order: 17 });
    const { headers, body } = await firstRequest(messageId);
    const verified = new Webhook(webhook.secret).verify(
      body.toString(),
      headers as Record<string, string>,
    );
    expect(verified).toEqual({ order: 17 });
    expect(headers['content-type']).toBe('application/json');
    expect(headers['user-agent']).toMatch(/^Posthorn\/\d/);
  });

  it('carries the traceparent of the API request when that is well formed', async () => {
    const { id: webhookId } = await newWebhook();
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    for (const [given, expected] of [
      [traceparent, traceparent],
      ['00-nonsense', undefined],
    ]) {
      const headers = { traceparent: given ?? '' };
      const { body } = await posthorn.api.post(
        '/webhook-messages',
        { webhookId, payload: {} },
        headers,
      );
      const request = await firstRequest((body.data as { id: string }).id);
      expect(request.headers.traceparent).toBe(expected);
    }
  });

  it('carries a payload that does not fit into its record', async () => {
    const webhook = await newWebhook();
    const payload = { text: 'ü'.repeat(100_000) };
    const { messageId } = await posthorn.api.send({ webhookId: webhook.id }, payload);
    const { body } = await firstRequest(messageId);
    expect(JSON.parse(body.toString())).toEqual(payload);
  });

  it('has a delivery that is pending before the attempt and delivered after it', async () => {
    const webhook = await newWebhook();
    let respond = (): void => undefined;
    const held = new Promise<void>((resolve) => (respond = resolve));
    receiver.answerWith((response) => {
      void held.then(() => response.writeHead(201, { 'x-request-id': 'r-1' }).end('thanks'));
    });
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId: webhook.id }, {});
    await firstRequest(messageId);
    const before = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
    expect(before.body.data).toMatchObject({ status: 'pending', attemptCount: 0, attempts: [] });
    respond();
    const after = await eventually('delivered', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      const shown = body.data as { status: string };
      return shown.status === 'delivered' && shown;
    });
    expect(after).toMatchObject({
      messageId,
      webhookId: webhook.id,
      attempts: [{ number: 1, outcome: 'success', statusCode: 201, response: 'thanks' }],
    });
    receiver.answerWith((response) => response.writeHead(200).end());
  });

  it('a message that fails shows when its next attempt is due', async () => {
    const { id: webhookId } = await newWebhook();
    receiver.answerWith(failing(1));
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    const make = createResources(posthorn.api);
    const shown = await eventually('the first failure', async () => {
      const delivery = await make.delivery(deliveryId);
      return delivery.attemptCount === 1 ? delivery : null;
    });
    const dueMs = Date.parse(String(shown.nextAttemptAt));
    expect(shown.status).toBe('pending');
    expect(dueMs - Date.parse(String(shown.attempts[0]?.updatedAt))).toBe(3_600_000);
    receiver.answerWith((response) => response.writeHead(200).end());
  });
});

describe('Webhook messages · the payload is delivered byte for byte [security]', () => {
  const MAX_BODY_BYTES = 262_144;

  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

  const post = (body: string): Promise<ApiAnswer> => posthorn.api.post('/webhook-messages', body);
  const sha256 = (bytes: Buffer | string): string =>
    createHash('sha256').update(bytes).digest('hex');

  const prefix = (webhookId: string) => `{"webhookId":"${webhookId}","payload":`;
  /** Returns a payload with which `{"webhookId":…,"payload":…}` has exactly this many bytes. */
  function payloadFor(webhookId: string, bodyBytes: number, unit: string): string {
    const bytes = bodyBytes - prefix(webhookId).length - '{"t":""}}'.length;
    const count = Math.floor(bytes / Buffer.byteLength(unit));
    return `{"t":"${unit.repeat(count)}${'x'.repeat(bytes - count * Buffer.byteLength(unit))}"}`;
  }
  const deep = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

  it.each<[string, (webhookId: string) => string]>([
    ['a big integer', () => '{"n":12345678901234567890}'],
    ['a number beyond every double', () => '{"x":1e400,"y":-0.0,"z":1E+2}'],
    ['a key given twice', () => '{"a":1.0,"a":2}'],
    ['keys that look like ours', () => '{"webhookId":"x","app_id":1,"payload":{"payload":{}}}'],
    ['escapes', () => '{"u":"\\u00e9\\/\\ud83d\\ude00\\ud800\\u0000","\\u0061":"\\n"}'],
    ['characters of all planes', () => '{"é":"\u2028日本😀\u0085","":" "}'],
    ['spaces and line ends', () => '{\r\n\t"a" : [ 1 ,2 ]\n}'],
    ['nothing in it', () => '{}'],
    ['prototype names', () => '{"__proto__":{"polluted":1},"constructor":{"prototype":1}}'],
    ['64 levels', () => deep(64)],
    ['a body of 262,144 bytes', (id) => payloadFor(id, MAX_BODY_BYTES, 'x')],
    ['a body of 262,144 bytes of unicode', (id) => payloadFor(id, MAX_BODY_BYTES, 'é日😀')],
  ])('with %s', async (_what, payloadOf) => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const payload = payloadOf(webhookId);
    const message = dataOf<ShownMessage>(await post(`${prefix(webhookId)}${payload}}`), 202);
    expect(message.payload).toBe(payload);
    const { body } = await eventually('the delivery', () => receiver.of(message.id)[0]);
    expect([body.length, sha256(body)]).toEqual([Buffer.byteLength(payload), sha256(payload)]);
  });
});

describe('Statistics', () => {
  interface ShownPoint {
    at: string;
    attempts: number;
    succeeded: number;
    failed: number;
    outcomes: Record<string, number>;
    firstAttempts: number;
    payloadBytes: number;
    latencyMs: Record<'mean' | 'max' | 'p50' | 'p95' | 'p99', number>;
  }

  interface ShownStats {
    step: string;
    from: string;
    to: string;
    points: ShownPoint[];
  }

  const PAYLOAD = { text: 'counted' };
  const PAYLOAD_BYTES = JSON.stringify(PAYLOAD).length;

  const { posthorn, make } = useCompany('contract');
  let good: Receiver;
  let bad: Receiver;
  /** Two apps with a webhook each: three messages to the first one succeed, two to the second one fail. */
  let ids: Record<'goodApp' | 'goodWebhook' | 'badApp' | 'badWebhook', string>;

  beforeAll(async () => {
    [good, bad] = [await startReceiver(), await startReceiver()];
    bad.answerWith(failing(99));
    const { id: projectId } = await make.project();
    const target = async (url: string) => {
      const { id: appId } = await make.app({ projectId });
      return { appId, webhookId: (await make.webhook({ url, appId })).id };
    };
    const [first, second] = [await target(good.url), await target(bad.url)];
    ids = {
      goodApp: first.appId,
      goodWebhook: first.webhookId,
      badApp: second.appId,
      badWebhook: second.webhookId,
    };
    for (let n = 0; n < 3; n += 1) await make.message({ appId: ids.goodApp, payload: PAYLOAD });
    // Addressed to the webhook: it counts for its app as well.
    for (let n = 0; n < 2; n += 1)
      await make.message({ webhookId: ids.badWebhook, payload: PAYLOAD });
    // Written by the dispatcher after five seconds, and added up by the retry service.
    const counts = [
      ['', 5],
      [`&appId=${ids.goodApp}`, 3],
      [`&webhookId=${ids.goodWebhook}`, 3],
      [`&appId=${ids.badApp}`, 2],
      [`&webhookId=${ids.badWebhook}`, 2],
    ] as const;
    for (const [owner, attempts] of counts) {
      const isCounted = async (): Promise<boolean> =>
        sumOf((await statsOf(`step=day${owner}`)).points, 'attempts') === attempts;
      await eventually(`the attempts of ${owner || 'the company'}`, isCounted, 60_000);
    }
  }, 180_000);

  afterAll(async () => {
    await Promise.all([good.close(), bad.close()]);
  });

  const statsOf = async (query: string, api: ApiClient = posthorn.api): Promise<ShownStats> =>
    dataOf<ShownStats>(await api.get(`/api/v1/stats?${query}`));

  function sumOf(points: readonly ShownPoint[], name: 'attempts' | 'succeeded' | 'failed'): number {
    return points.reduce((sum, point) => sum + point[name], 0);
  }

  /** Attempts, successes and failures. */
  const figuresOf = ({ points }: ShownStats): number[] =>
    (['attempts', 'succeeded', 'failed'] as const).map((name) => sumOf(points, name));

  describe('Statistics · GET /api/v1/stats', () => {
    it.each(['minute', 'hour', 'day'])('counts the attempts of the company by %s', async (step) => {
      const stats = await statsOf(`step=${step}`);
      expect(figuresOf(stats)).toEqual([5, 3, 2]);
      const [point] = stats.points;
      expect(new Date(String(point?.at)).toISOString()).toBe(point?.at);
      expect(stats.step).toBe(step);
      expect(Date.parse(stats.from)).toBeLessThanOrEqual(Date.parse(String(point?.at)));
    });

    it('counts by webhook and by app, messages to one webhook included', async () => {
      const { goodApp, goodWebhook, badApp, badWebhook } = ids;
      const asked = [
        `webhookId=${goodWebhook}`,
        `appId=${goodApp}`,
        `webhookId=${badWebhook}`,
        `appId=${badApp}`,
      ];
      const all = await Promise.all(asked.map((query) => statsOf(`step=day&${query}`)));
      expect(all.map(figuresOf)).toEqual([
        [3, 3, 0],
        [3, 3, 0],
        [2, 0, 2],
        [2, 0, 2],
      ]);
    });

    it('are shown for several apps at once', async () => {
      const { goodApp, badApp } = ids;
      const counted = await posthorn.api.get(`/api/v1/app-counts?ids=${goodApp},${badApp}`);
      expect(dataOf<object[]>(counted)).toEqual(
        expect.arrayContaining([
          { appId: goodApp, webhooks: 1, succeeded: 3, failed: 0 },
          { appId: badApp, webhooks: 1, succeeded: 0, failed: 2 },
        ]),
      );
    });

    it('returns outcomes, durations and bytes of attempts', async () => {
      const { points } = await statsOf(`step=day&webhookId=${ids.badWebhook}`);
      const [point] = points;
      expect(point).toMatchObject({ firstAttempts: 2, outcomes: { http_5xx: 2 } });
      expect(points.reduce((sum, each) => sum + each.payloadBytes, 0)).toBe(2 * PAYLOAD_BYTES);
      const { mean, max, p50, p95, p99 } = point?.latencyMs ?? {};
      expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].sort((a = 0, b = 0) => a - b));
      expect(mean).toBeLessThanOrEqual(Number(max));
    });

    it('shows a key of one app the attempts of its app', async () => {
      const fields = { name: 'Only app', scopes: ['read'], appId: ids.badApp };
      const key = dataOf<{ key: string }>(await posthorn.api.post('/api/v1/api-keys', fields), 201);
      const api = createApiClient(posthorn.baseUrl, key.key, { companyid: posthorn.companyId });
      expect(figuresOf(await statsOf('step=day', api))).toEqual([2, 0, 2]);
      const own = await statsOf(`step=day&webhookId=${ids.badWebhook}`, api);
      expect(figuresOf(own)).toEqual([2, 0, 2]);
      for (const query of [`webhookId=${ids.goodWebhook}`, `appId=${ids.goodApp}`]) {
        expectNotFound(await api.get(`/api/v1/stats?${query}`));
      }
    });

    it('returns the newest part of a period that is too long, and its beginning', async () => {
      const stats = await statsOf('step=minute&since=2020-01-01T00:00:00Z');
      expect(await statsOf('step=minute&from=2020-01-01T00:00:00Z')).toMatchObject({
        from: stats.from,
      });
      expect(Date.parse(stats.to) - Date.parse(stats.from)).toBe(86_400_000);
      expect(figuresOf(stats)).toEqual([5, 3, 2]);
    });

    it('has no points where nothing was attempted', async () => {
      const span = 'from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z';
      expect((await statsOf(`step=minute&${span}`)).points).toEqual([]);
    });

    it.each([
      ['step', 'step=week'],
      ['from', 'from=yesterday'],
      ['to', 'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'],
      ['until', 'since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z'],
      ['from', 'since=2026-01-01T00:00:00Z&from=2026-01-01T00:00:00Z'],
      ['appId', 'appId=app_1&webhookId=wh_1'],
    ])('refuses a wrong %s', async (name, query) => {
      const answer = await posthorn.api.get(`/api/v1/stats?${query}`);
      expectInvalid(answer, name);
    });

    it('forgets a webhook that is deleted', async () => {
      const { id: webhookId } = await make.webhook({ url: good.url, appId: ids.goodApp });
      expectNotFound(await posthorn.api.get('/api/v1/stats?webhookId=wh_unknown'));
      expect(figuresOf(await statsOf(`webhookId=${webhookId}`))).toEqual([0, 0, 0]);
      dataOf(await posthorn.api.delete(`/api/v1/webhooks/${webhookId}`));
      expectNotFound(await posthorn.api.get(`/api/v1/stats?webhookId=${webhookId}`));
    });
  });

  /** What the command prints about this company. */
  async function printed(...args: string[]): Promise<object[]> {
    const rows = JSON.parse(await runProgram(ADMIN, [...args, '--json'], posthorn.env)) as object[];
    return rows.filter((row) => 'companyId' in row && row.companyId === posthorn.companyId);
  }

  describe('The administration command', () => {
    it('prints what companies used in a month', async () => {
      const [point] = (await statsOf('step=day')).points;
      const month = String(point?.at).slice(0, 7);
      const bytes = 5 * PAYLOAD_BYTES;
      const used = { messages: 5, messageBytes: bytes, deliveries: 5, attempts: 5, succeeded: 3 };
      // Messages and attempts are counted apart.
      const row = await eventually('the counts', async () => {
        const [found] = await printed('usage', '--month', month);
        const counts = new Map(Object.entries(found ?? {}));
        return Object.entries(used).every(([name, count]) => counts.get(name) === count) && found;
      });
      expect(row).toEqual({ companyId: posthorn.companyId, ...used, sentBytes: bytes });
      const csv = await runProgram(ADMIN, ['usage', '--month', month, '--csv'], posthorn.env);
      expect(csv.split('\r\n')).toEqual(
        expect.arrayContaining([
          'companyId,messages,messageBytes,deliveries,attempts,succeeded,sentBytes',
          `${posthorn.companyId},5,${bytes},5,5,3,${bytes}`,
        ]),
      );
      await expect(runProgram(ADMIN, ['usage', '--month', 'May'], posthorn.env)).rejects.toThrow(
        '--month must be a month such as 2026-11.',
      );
    });
  });
});
