import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Client, createClient } from './client.ts';

describe('the client of the fault suite', () => {
  let gateway: Server;
  let client: Client;
  let answers: ((response: ServerResponse) => void)[];
  let keys: unknown[];

  beforeEach(async () => {
    [answers, keys] = [[], []];
    gateway = createServer((request, response) => {
      keys.push(request.headers['idempotency-key']);
      request.resume().on('end', () => answers.shift()?.(response));
    });
    gateway.listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    const { port } = gateway.address() as AddressInfo;
    // Nothing listens on the first port.
    const baseUrls = ['http://127.0.0.1:1', `http://127.0.0.1:${port}`];
    client = createClient({ baseUrls, signal: new AbortController().signal });
  });

  afterEach(async () => {
    await client.close();
    gateway.closeAllConnections();
    gateway.close();
  });

  const accept = (response: ServerResponse): unknown =>
    response.writeHead(202).end('{"success":true,"data":{"id":"msg_1"}}');
  const respond = (status: number) => (response: ServerResponse) => {
    response.writeHead(status).end('{}');
  };
  const breakOff = (response: ServerResponse): unknown => response.socket?.destroy();
  const send = (idempotencyKey: string | null = null) =>
    client.send({ apiKey: 'k', body: '{}', idempotencyKey });

  it('skips a gateway that refuses the connection', async () => {
    answers = [accept];
    expect(await send()).toEqual({ kind: 'accepted', messageId: 'msg_1' });
    expect(client.answers()).toEqual({ 'connection refused': 1, 202: 1 });
  });

  it('counts a message without a response, or with a 5xx, as unknown', async () => {
    answers = [breakOff, respond(503)];
    expect(await send()).toEqual({ kind: 'unknown', why: 'connection closed' });
    expect(await send()).toEqual({ kind: 'unknown', why: '503' });
  });

  it('counts a message with another 4xx as refused', async () => {
    answers = [respond(400)];
    expect(await send()).toEqual({ kind: 'refused', status: 400 });
  });

  it('repeats a message with an idempotency key until it is accepted', async () => {
    answers = [breakOff, respond(409), accept];
    expect(await send('key')).toEqual({ kind: 'accepted', messageId: 'msg_1' });
    expect(keys).toEqual(['key', 'key', 'key']);
  });
});
