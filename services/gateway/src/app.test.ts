import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { minimalAppDeps } from '../../../test/support/api/minimal-app.ts';
import { ApiError } from './api-error.ts';
import { assignRequestId, createApp, refuseWhileClockIsWrong } from './app.ts';
import { createHardenedServer } from './http/harden-server.ts';
import { route } from './http/route.ts';

/** Returns the reason of the refusal; null when the request goes on. */
function refusalOf(method: string, isRight: boolean): string | null {
  try {
    refuseWhileClockIsWrong({ isRight: () => isRight }, { method });
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  return null;
}

test('only a wrong clock refuses requests, and only those that may store something', () => {
  const methods = ['GET', 'POST', 'PUT', 'DELETE'];
  expect(methods.map((method) => refusalOf(method, true))).toEqual([null, null, null, null]);
  const refused = methods.map((method) => refusalOf(method, false));
  expect(refused).toEqual([null, 'clock_wrong', 'clock_wrong', 'clock_wrong']);
});

/** Returns the request id that the handlers see and the one in the response. */
function idFor(given: string | undefined): { seen: unknown; returned: string } {
  const locals: Record<string, unknown> = {};
  let returned = '';
  const setHeader = (name: string, value: string): void => {
    if (name === 'X-Request-Id') returned = value;
  };
  // The few members that the function uses; express has no smaller type for them.
  const response = { locals, setHeader } as unknown as Parameters<typeof assignRequestId>[1];
  assignRequestId({ headers: given === undefined ? {} : { 'x-request-id': given } }, response);
  return { seen: locals.requestId, returned };
}

describe('the request id', () => {
  test.each(['12345678', 'a.B_c-9z', 'x'.repeat(128)])('%j is taken from the client', (given) => {
    expect(idFor(given)).toEqual({ seen: given, returned: given });
  });

  test.each([
    ...[
      undefined,
      '',
      '1234567',
      'x'.repeat(129),
      '12345678\n',
      '1234 5678',
      '<script>',
      'schlüssel',
    ],
  ])('%j is replaced by a generated one', (given) => {
    const { seen, returned } = idFor(given);
    expect(returned).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen).toBe(returned);
  });

  test('is different each time it is generated', () => {
    expect(idFor(undefined).returned).not.toBe(idFor(undefined).returned);
  });
});

describe('an address without an id', () => {
  let server: Server;

  const echo = route({
    operationId: 'createEcho',
    method: 'post',
    path: '/echo',
    tag: 'Test',
    summary: 'Return the body',
    query: z.object({ loud: z.string().optional() }),
    body: z.object({ text: z.string() }),
    response: { status: 201, message: 'Echoed' },
    handle: ({ body, params, header }) =>
      Promise.resolve({
        data: { ...body.value, params, host: header('host') !== undefined },
        headers: { 'X-Own': 'a' },
      }),
  });
  const read = route({
    operationId: 'readEcho',
    method: 'get',
    path: '/echo',
    tag: 'Test',
    summary: 'Read',
    response: { status: 200, message: 'Read' },
    handle: () => Promise.resolve({ data: { text: 'ü' } }),
  });

  beforeEach(async () => {
    const caller = { companyId: 'comp_a', appId: null, keyId: 'key_1', scopes: ['read' as const] };
    const { listener, classes } = createApp({
      ...minimalAppDeps([echo, read]),
      identify: ({ headers }) =>
        headers['x-api-key'] === 'wrong'
          ? Promise.reject(new ApiError('unauthorized'))
          : Promise.resolve(caller),
    });
    server = createHardenedServer(listener, undefined, classes);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Returns status, headers without the changing ones, and body. */
  async function send(method: string, path: string, headers: Record<string, string>, body = '') {
    const { port } = server.address() as AddressInfo;
    const sent = request({ port, host: '127.0.0.1', method, path, headers });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const { 'x-request-id': id, ...shown } = response.headers;
    const answer = (await text(response)).replace(String(id), 'ID');
    return { status: response.statusCode, headers: { ...shown, date: '' }, answer };
  }

  const JSON_BODY = { 'content-type': 'application/json' };

  test.each([
    ['a creation', 'POST', '/echo', JSON_BODY, '{"text":"ü"}', 201],
    ['the other spelling', 'POST', '/api/v1/echo', JSON_BODY, '{"text":"ü"}', 201],
    ['a read', 'GET', '/echo', {}, '', 200],
    ['a wrong body', 'POST', '/echo', JSON_BODY, '{"text":1}', 400],
    ['another type', 'POST', '/echo', { 'content-type': 'text/plain' }, 'a', 415],
    ['a wrong key', 'POST', '/echo', { ...JSON_BODY, 'x-api-key': 'wrong' }, '{}', 401],
    ['a delivery', 'POST', '/echo', { ...JSON_BODY, 'webhook-id': 'msg_1' }, '{}', 400],
  ])('answers %s as Express does', async (_what, method, path, headers, body, status) => {
    const direct = await send(method, path, headers, body);
    expect(direct.status).toBe(status);
    // A question mark leads through Express.
    expect(await send(method, `${path}?`, headers, body)).toEqual(direct);
  });

  test('sends its data whatever If-None-Match says', async () => {
    expect(await send('GET', '/echo', { 'if-none-match': '*' })).toMatchObject({ status: 200 });
  });

  test('sends no body for HEAD, and lists its methods for others', async () => {
    const { status, answer } = await send('HEAD', '/echo', {});
    expect({ status, answer }).toEqual({ status: 200, answer: '' });
    const { status: refused, headers } = await send('DELETE', '/echo', {});
    expect({ refused, allow: headers.allow }).toEqual({ refused: 405, allow: 'POST, GET' });
  });
});
