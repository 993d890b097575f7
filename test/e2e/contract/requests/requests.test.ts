import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../../support/api/api-client.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawAnswer,
  type RawConnection,
} from '../../../support/receivers/raw-connection.ts';

describe('Envelope and errors', () => {
  const { posthorn } = useCompany('contract');

  const create = (body: unknown, headers?: Record<string, string>): Promise<ApiAnswer> =>
    posthorn.api.post('/projects', body, headers);

  describe('Response envelope [security]', () => {
    it('has success, message and data when a request succeeds', async () => {
      const { body } = await create({ name: 'One' });
      expect(Object.keys(body).sort()).toEqual(['data', 'message', 'success']);
      expect(body).toMatchObject({ success: true, message: expect.stringMatching(/\S/) });
    });

    it('has a list as data when a list is requested', async () => {
      const { body } = await posthorn.api.get('/webhooks');
      expect(body.data).toEqual([]);
    });

    it('has only success and message for a delete', async () => {
      const { id } = dataOf<{ id: string }>(await create({ name: 'Gone' }), 201);
      expectDeleted(await posthorn.api.delete(`/api/v1/projects/${id}`));
    });

    it('is JSON in UTF-8, with headers that keep browsers from guessing another type', async () => {
      const { headers } = await create({ name: 'Ü' });
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.get('x-powered-by')).toBeNull();
    });
  });

  describe('Request id', () => {
    it('is that of the client when it may be, in responses of both kinds', async () => {
      const id = '12345678';
      const good = await create({ name: 'One' }, { 'x-request-id': id });
      const bad = await create({}, { 'x-request-id': id });
      expect([good.headers.get('x-request-id'), bad.headers.get('x-request-id')]).toEqual([id, id]);
      expect(bad.body.requestId).toBe(id);
      const { headers, body } = await create({}, { 'x-request-id': '1234567' });
      expect(body.requestId).toMatch(/^[A-Za-z0-9._-]{8,128}$/);
      expect(headers.get('x-request-id')).toBe(body.requestId);
    });
  });

  describe('Errors · invalid requests', () => {
    it('all problems of a request are reported at once', async () => {
      const body = { name: 7, description: 'x'.repeat(1_001), environment: 'test', colour: 'red' };
      expectInvalid(await create(body), 'name', 'description', 'environment', 'colour');
    });

    it('an update that is invalid by itself and also with the stored webhook gets all problems at once', async () => {
      const { webhookId } = await posthorn.api.createTarget('http://127.0.0.1:9/hook');
      const update = {
        name: 'a',
        apiKey: 'k',
        url: 7,
        customHeaders: [{ key: 'X-Service-Signature', value: 'v' }],
      };
      const answer = await posthorn.api.put(`/webhooks/${webhookId}?colour=red`, update);
      expectInvalid(answer, 'name', 'apiKey', 'url', 'customHeaders.0.key', 'colour');
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'json'])(
      'Content-Type %s is refused with 415',
      async (type) => {
        const answer = await create({ name: 'One' }, { 'content-type': type });
        expectFailure(answer, 415, 'unsupported_media_type');
      },
    );

    it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON'])(
      'Content-Type %s is accepted',
      async (type) => {
        dataOf(await create({ name: 'One' }, { 'content-type': type }), 201);
      },
    );
  });

  describe('Errors · unknown paths, ids and parameters', () => {
    it.each([
      ['GET', '/nowhere'],
      ['GET', '/'],
      ['GET', '/api/v2/projects'],
      ['GET', '/projects/a/b'],
      ['GET', '/webhooks/%E0%A4%A'],
    ])('%s %s gets 404 route_not_found', async (method, path) => {
      expectFailure(await posthorn.api.request(method, path), 404, 'route_not_found');
    });

    it.each([
      ['PATCH', '/projects', 'POST, GET'],
      ['POST', '/webhooks/wh_1', 'GET, PUT, PATCH, DELETE'],
      ['DELETE', '/api/v1/api-keys', 'POST, GET'],
      ['OPTIONS', '/apps', 'POST, GET'],
    ])('%s %s gets 405 with the methods that there are', async (method, path, allow) => {
      const answer = await posthorn.api.request(method, path);
      expectFailure(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe(allow);
    });

    it('a delivery gets 400, so that no webhook sends messages to itself [security]', async () => {
      const answer = await posthorn.api.get('/webhooks', { 'webhook-id': 'msg_1' });
      expectFailure(answer, 400, 'delivery_refused');
    });

    it.each([
      ['GET', '/webhooks'],
      ['GET', '/nowhere'],
      ['DELETE', '/projects/proj_1'],
    ])('%s %s has a response that nobody may keep or guess about', async (method, path) => {
      const { headers } = await posthorn.api.request(method, path);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    });

    it('an id of another kind, a malformed id and an unknown id get the same 404 [security]', async () => {
      const unknown = `wh_${'0'.repeat(26)}`;
      for (const id of ['proj_1', 'x'.repeat(1_000), '%00', unknown]) {
        expectNotFound(await posthorn.api.get(`/webhooks/${id}`));
      }
    });

    it('an unknown query parameter is refused with 400 that names it', async () => {
      expectInvalid(await posthorn.api.get('/webhooks?app=app_1&page=2'), 'app', 'page');
      expectInvalid(await posthorn.api.get('/api/v1/webhook-messages?stauts=pending'), 'stauts');
      expectInvalid(await create({ name: 'One', naem: 'Two' }), 'naem');
    });

    it('a query parameter given twice is refused with 400', async () => {
      expectInvalid(await posthorn.api.get('/webhooks?limit=1&limit=2'), 'limit');
    });
  });

  describe('Errors · internals [security]', () => {
    it('no error shows code, driver or host', async () => {
      const answers = await Promise.all([
        create('{"name":"\\ud800"}'),
        posthorn.api.get('/webhooks/%00'),
        posthorn.api.get('/webhooks?appId=%00'),
        posthorn.api.get(`/api/v1/webhook-messages?cursor=${'x'.repeat(200)}`),
        posthorn.api.post('/webhook-messages', { appId: { $gt: '' }, payload: {} }),
      ]);
      for (const { status, body } of answers) {
        expect(status).toBeLessThan(500);
        expect(JSON.stringify(body)).not.toMatch(/node_modules|mongo|kafka|\.ts:|127\.0\.0\.1/i);
      }
    });
  });
});

const CONNECTIONS = 5_000;
/** Connections are opened in groups no larger than the usual backlog of a listening socket. */
const AT_ONCE = 250;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PROPFIND'];

describe('Hostile requests [security]', () => {
  let posthorn: OwnGateway;
  const receiver = useReceiver();
  let webhookId: string;

  beforeAll(async () => {
    // All requests of this test come from one address.
    posthorn = await joinWithGateway('contract', {
      WRONG_KEYS_PER_MINUTE: '0',
      REDIS_PREFIX: 'thostile:',
    });
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
    await readLag();
  }, 120_000);

  afterEach(async () => {
    console.log(`the gateway's event loop lagged ${await readLag()} s (p99)`);
  });

  afterAll(async () => {
    await posthorn.stop();
  });

  /** Returns the lag since the last call. */
  async function readLag(): Promise<string> {
    const metrics = await (await fetch(`${posthorn.gateway.opsUrl}/metrics`)).text();
    return /^nodejs_eventloop_lag_p99_seconds\S* (.*)$/m.exec(metrics)?.[1] ?? 'unknown';
  }

  const open = (text: string): RawConnection =>
    openConnection(Number(new URL(posthorn.baseUrl).port), text);

  /** Sends a message in raw HTTP and prints how long the response took. */
  async function post(what: string, headers: string, body: Buffer | string): Promise<RawAnswer> {
    const head = [
      'POST /webhook-messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json',
      `X-Api-Key: ${posthorn.apiKey}`,
      headers,
    ];
    const startedMs = performance.now();
    const { socket, until } = open(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(body);
    const answer = parseAnswer(await until(ENVELOPE));
    socket.destroy();
    console.log(`${what}: ${answer.status} in ${(performance.now() - startedMs).toFixed(1)} ms`);
    return answer;
  }

  const withLength = (body: string): [string, string] => [
    `Content-Length: ${Buffer.byteLength(body)}`,
    body,
  ];

  const message = (payload: string) => `{"webhookId":"${webhookId}","payload":${payload}}`;

  async function expectService(): Promise<void> {
    const { messageId } = await posthorn.api.send({ webhookId }, { still: 'here' });
    expect(messageId).toMatch(/^msg_/);
  }

  it('requests with as many keys as fit are accepted in the payload and refused beside it', async () => {
    const members = (count: number) =>
      Array.from({ length: count }, (_, n) => `"${n.toString(36)}":1`).join(',');
    const inPayload = await post('28,000 keys', ...withLength(message(`{${members(28_000)}}`)));
    expect(inPayload.status).toBe(202);
    const beside = await post('28,000 keys beside', ...withLength(`{${members(28_000)}}`));
    expect([beside.status, beside.body.code]).toEqual([400, 'invalid_request']);
    const tooMany = await post('100,000 keys', ...withLength(message(`{${members(100_000)}}`)));
    expect(tooMany.status).toBe(413);
    await expectService();
  });

  it('that never end do not delay other requests', async () => {
    const slow = Array.from({ length: 500 }, (_, n) =>
      open(n % 2 === 0 ? 'GET /webhooks HT' : withoutEnd()),
    );
    await expectService();
    for (const { socket } of slow) socket.destroy();
    await expectService();
  });

  const withoutEnd = (): string =>
    `POST /webhook-messages HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${posthorn.apiKey}\r\n` +
    'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"webhookId":';

  it('requests on 5,000 connections at once all get a response, and other requests are served meanwhile', async () => {
    const connections: RawConnection[] = [];
    const statuses = new Map<number, number>();
    while (connections.length < CONNECTIONS) {
      const batch = Array.from({ length: AT_ONCE }, () =>
        open('GET /webhooks HTTP/1.1\r\nHost: a\r\nX-Api-Key: wrong\r\n\r\n'),
      );
      connections.push(...batch);
      for (const received of await Promise.all(batch.map(({ until }) => until(ENVELOPE)))) {
        const { status } = parseAnswer(received);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
    expect([...statuses]).toEqual([[401, CONNECTIONS]]);
    expect(connections.filter(({ socket }) => !socket.destroyed)).toHaveLength(CONNECTIONS);
    await expectService();
    for (const { socket } of connections) socket.destroy();
    await expectService();
  });

  it('of every kind to every route leave at most 2,400 series, with no label of a client', async () => {
    const document = (await (await fetch(`${posthorn.baseUrl}/openapi.json`)).json()) as {
      paths: Record<string, object>;
    };
    const paths = Object.keys(document.paths).map((path) =>
      path.replace('/api/v1', '').replaceAll(/\{\w+\}/g, 'wh_1'),
    );
    const madeUp = Array.from({ length: 50 }, (_, n) => `/made-up-${n}`);
    for (const path of [...paths, ...madeUp]) {
      await Promise.all(METHODS.flatMap((method) => sendAllKinds(path, method)));
    }
    const text = await (await fetch(`${posthorn.gateway.opsUrl}/metrics`)).text();
    const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const requests = series.filter((line) => line.startsWith('posthorn_http_requests_total{'));
    const routes = new Set(requests.map((line) => /method="\w+",route="[^"]+"/.exec(line)?.[0]));
    console.log(`${series.length} series, ${requests.length} of requests, ${routes.size} routes`);
    expect(text).not.toMatch(/made-up|PROPFIND/);
    expect(routes.size).toBeGreaterThan(paths.length);
    // 1,860 series with 173 routes, each of which has three more that cannot be provoked here: 429, 500 and 503. A further
    // route adds about six.
    expect(series.length + routes.size * 3).toBeLessThanOrEqual(2_400);
    await expectService();
  }, 120_000);

  /** Requests that are refused at every stage, with and without the version in their path. */
  function sendAllKinds(path: string, method: string): Promise<unknown>[] {
    const json = { 'content-type': 'application/json' };
    const key = { 'x-api-key': posthorn.apiKey };
    const bodies = method === 'GET' || method === 'HEAD' ? [null] : ['{', '{}'];
    const kinds: RequestInit[] = [
      {},
      { headers: { 'x-api-key': 'wrong' } },
      { headers: { ...key, companyid: 'comp_other' } },
      { headers: { ...key, 'webhook-id': 'msg_1' } },
      ...bodies.map((body) => ({ headers: { ...key, ...json }, body })),
      ...bodies.map((body) => ({ headers: key, body })),
    ];
    return ['', '/api/v1'].flatMap((version) =>
      kinds.map(async (kind) => {
        const answer = await fetch(posthorn.baseUrl + version + path, { method, ...kind });
        await answer.text();
      }),
    );
  }
});
