import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../../support/api/api-client.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

let posthorn: OwnCompany;

beforeAll(async () => {
  posthorn = await joinShared('contract');
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

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
  it.each(['12345678', 'a.b_c-D9', 'x'.repeat(128)])('%s is accepted and returned', async (id) => {
    const good = await create({ name: 'One' }, { 'x-request-id': id });
    const bad = await create({}, { 'x-request-id': id });
    expect([good.headers.get('x-request-id'), bad.headers.get('x-request-id')]).toEqual([id, id]);
    expect(bad.body.requestId).toBe(id);
  });

  it.each(['1234567', 'x'.repeat(129), 'with space', 'semi;colon', 'ünïcödé'])(
    '%s is replaced by a generated id',
    async (id) => {
      const { headers, body } = await create({}, { 'x-request-id': id });
      expect(body.requestId).toMatch(/^[A-Za-z0-9._-]{8,128}$/);
      expect(body.requestId).not.toBe(id);
      expect(headers.get('x-request-id')).toBe(body.requestId);
    },
  );
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

  it.each([
    ['no JSON', '{"name":'],
    ['a list', '[]'],
    ['text', '"name"'],
    ['null', 'null'],
    ['nothing', ''],
    ['a byte-order mark', '\ufeff{"name":"One"}'],
    ['a key twice', '{"name":"One","name":"One"}'],
    ['a key twice, once written with an escape', '{"name":"One","n\\u0061me":"Two"}'],
  ])('%s is refused with 400', async (_what, text) => {
    expectFailure(await create(text), 400, 'invalid_json');
  });

  it('invalid UTF-8 is refused with 400', async () => {
    const response = await fetch(`${posthorn.baseUrl}/projects`, {
      method: 'POST',
      headers: { 'x-api-key': posthorn.apiKey, 'content-type': 'application/json' },
      body: Buffer.from([...Buffer.from('{"name":"'), 0xc3, 0x28, ...Buffer.from('"}')]),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ success: false, code: 'invalid_json' });
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
    ['POST', '/webhooks/wh_1', 'GET, PUT, DELETE'],
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
