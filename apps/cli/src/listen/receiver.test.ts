import { afterEach, describe, expect, it } from '@jest/globals';
import { sign } from '@posthorn/verify';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { selfSigned, type SelfSigned } from '../../../../test/support/receivers/self-signed.ts';
import {
  ArrivalOrder,
  type Delivered,
  endToEnd,
  type ListenReceiver,
  startListenReceiver,
} from './receiver.ts';

it('passes results on in the order of arrival, without those that were dropped', () => {
  const passed: string[] = [];
  const order = new ArrivalOrder<string>((result) => passed.push(result), 10);
  const [first, second, third, fourth] = [0, 1, 2, 3].map(() => order.begin());
  second?.('second');
  fourth?.('fourth');
  expect(passed).toEqual([]);
  first?.('first');
  expect(passed).toEqual(['first', 'second']);
  third?.(null);
  expect(passed).toEqual(['first', 'second', 'fourth']);
});

it('passes results on without one that holds back too many', () => {
  const passed: number[] = [];
  const order = new ArrivalOrder<number>((result) => passed.push(result), 2);
  const slow = order.begin();
  for (const n of [1, 2]) order.begin()(n);
  expect(passed).toEqual([]);
  order.begin()(3);
  expect(passed).toEqual([1, 2, 3]);
  order.begin()(4);
  slow(0);
  expect(passed).toEqual([1, 2, 3, 0, 4]);
});

it('forwards headers in their spelling, but those of the connection', () => {
  const raw = [
    ['Host', 'a'],
    ['Webhook-Id', 'msg_1'],
    ['Connection', 'close, X-Private'],
    ['x-private', '1'],
    ['Transfer-Encoding', 'chunked'],
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
  ];
  const kept = endToEnd(raw.flat(), 'close, X-Private', new Set(['host']));
  expect(kept).toEqual(['Webhook-Id', 'msg_1', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']);
});

const SECRET = 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=';

describe('The receiver of listen', () => {
  const closing: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** Starts a receiver before a target that answers so; `next` returns what is reported next. */
  async function start(
    answer: RequestListener,
    { identity, verifiesTarget = true }: { identity?: SelfSigned; verifiesTarget?: boolean } = {},
  ) {
    const server: Server = identity ? createTlsServer(identity, answer) : createServer(answer);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const found: ((delivered: Delivered) => void)[] = [];
    const receiver: ListenReceiver = await startListenReceiver({
      target: new URL(`${identity ? 'https' : 'http'}://127.0.0.1:${port}/hook`),
      verifiesTarget,
      extraHeaders: [],
      port: 0,
      secrets: () => [SECRET],
      nowMs: Date.now,
      eventTypeOf: () => Promise.resolve('order.paid'),
      onDelivered: (delivered) => found.shift()?.(delivered),
      onRefused: () => undefined,
    });
    receiver.report();
    closing.push(receiver.close, async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const next = (): Promise<Delivered> => new Promise((resolve) => found.push(resolve));
    return { url: `http://127.0.0.1:${receiver.port}/`, port: receiver.port, next };
  }

  it('reports what it has answered before its end, also where the type is still looked up', async () => {
    const looked = Promise.withResolvers<string>();
    const reported: Delivered[] = [];
    const receiver = await startListenReceiver({
      target: null,
      verifiesTarget: true,
      extraHeaders: [],
      port: 0,
      secrets: () => [SECRET],
      nowMs: Date.now,
      eventTypeOf: () => looked.promise,
      onDelivered: (delivered) => reported.push(delivered),
      onRefused: () => undefined,
    });
    receiver.report();
    expect((await deliver(`http://127.0.0.1:${receiver.port}/`)).status).toBe(204);
    const closed = receiver.close();
    expect(reported).toEqual([]);
    looked.resolve('order.paid');
    await closed;
    expect(reported).toMatchObject([{ status: 204, eventType: 'order.paid' }]);
  });

  const deliver = async (url: string): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: await sign({ payload: '{}', secret: SECRET }),
      body: '{}',
    });

  it('passes status, headers and body of the target on', async () => {
    const { url, next } = await start((_request, response) => {
      response.writeHead(429, { 'retry-after': '7', 'x-own': 'a' }).end('slower');
    });
    const delivered = next();
    const answer = await deliver(url);
    expect([answer.status, answer.headers.get('retry-after'), await answer.text()]).toEqual([
      429,
      '7',
      'slower',
    ]);
    expect(await delivered).toMatchObject({ status: 429, error: null, eventType: 'order.paid' });
  });

  it.each([
    [true, 502, 'self-signed certificate: see --skip-verify'],
    [false, 204, null],
  ])('verifies the certificate of the target: %s', async (verifiesTarget, status, error) => {
    const options = { identity: selfSigned('127.0.0.1'), verifiesTarget };
    const { url, next } = await start((_request, response) => {
      response.writeHead(204).end();
    }, options);
    const delivered = next();
    expect((await deliver(url)).status).toBe(status);
    expect(await delivered).toMatchObject({ status, error });
  });

  it('names the way to take a certificate for another host', async () => {
    const { url, next } = await start(() => undefined, { identity: selfSigned('other.local') });
    const delivered = next();
    await deliver(url);
    expect((await delivered).error).toMatch(/: see --skip-verify$/);
  });

  it('breaks its answer off where the target does', async () => {
    const { url, next } = await start((_request, response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('half', () => response.socket?.resetAndDestroy());
    });
    const delivered = next();
    await expect(deliver(url).then((answer) => answer.text())).rejects.toThrow();
    expect(await delivered).toMatchObject({ status: null, error: 'aborted' });
  });

  it('ends the request to the target when Posthorn waits no longer', async () => {
    let arrived: () => void = () => undefined;
    const isHere = new Promise<void>((resolve) => (arrived = resolve));
    let ended: () => void = () => undefined;
    const hasEnded = new Promise<void>((resolve) => (ended = resolve));
    const { port, next } = await start((_request, response) => {
      response.once('close', ended);
      arrived();
    });
    const delivered = next();
    const headers = await sign({ payload: '{}', secret: SECRET });
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n${lines.join('\r\n')}\r\n\r\n{}`,
    );
    await isHere;
    socket.destroy();
    await hasEnded;
    expect(await delivered).toMatchObject({ status: null, error: 'Posthorn waited no longer' });
  });

  it('refuses a body that is too large, without reading on', async () => {
    const { url } = await start(() => undefined);
    const body = 'x'.repeat(1_100_000);
    const headers = await sign({ payload: body, secret: SECRET });
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(413);
  });
});
