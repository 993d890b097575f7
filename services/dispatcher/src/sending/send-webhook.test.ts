import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress/egress-rules.ts';
import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import type { AuthMethod, Webhook } from '@posthorn/domain/webhook.ts';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { createDeadlineSweep, type DeadlineSweep } from './deadline-sweep.ts';
import { createDeliveryAgent, type DeliveryAgent } from './connect/delivery-agent.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createSendWebhook } from './send-webhook.ts';

const WALL_MS = 1_700_000_000_999;
const policy = { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true };
const payload = Buffer.from('{"n":12345678901234567890, "é":1e400}');
const due = sampleDue({
  messageId: 'msg_01hf2m6q7xabcdefghjkmnpqrs',
  attemptNumber: 3,
  trigger: 'retry',
});

let nowMs = 0;
let agent: DeliveryAgent;
let deadlines: DeadlineSweep;
let server: Server;
let origin = '';
let answer: (response: ServerResponse, request: IncomingMessage) => void;
let requests: { request: IncomingMessage; body: Buffer }[] = [];

beforeEach(async () => {
  [nowMs, requests] = [0, []];
  answer = (response) => response.end('ok');
  agent = createDeliveryAgent({
    policy,
    connectTimeoutMs: 5_000,
    hosts: createHostResolver(),
    proxy: null,
    onRefused: () => undefined,
    onOpened: () => undefined,
  });
  deadlines = createDeadlineSweep(() => nowMs);
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ request, body: Buffer.concat(chunks) });
      answer(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  deadlines.stop();
  await agent.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function send(
  customHeaders: Webhook['customHeaders'] = [],
  authMethod: AuthMethod = { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' },
) {
  const secret = secretFromBytes(Buffer.alloc(32, 7));
  const fields = { url: `${origin}/hook?a=1`, secret, customHeaders, authMethod };
  const webhook = sampleWebhook(1, fields);
  const post = createSendWebhook({
    agentOf: () => agent,
    deadlines,
    timeoutMs: 15_000,
    userAgent: 'Posthorn/1',
    wallClockMs: () => WALL_MS,
    monotonicMs: () => nowMs,
  });
  const attempt = await post(due, payload, {
    kind: 'opened',
    webhook,
    signer: signerOf(webhook),
    origin,
    path: '/hook?a=1',
    tls: null,
  });
  if (!attempt) throw new Error('nothing was sent');
  return attempt;
}

describe('one attempt', () => {
  test('posts the payload byte for byte to the path and query, signed for this attempt', async () => {
    await send();
    const [{ request, body } = { request: null, body: null }] = requests;
    expect([request?.method, request?.url, body]).toEqual(['POST', '/hook?a=1', payload]);
    expect(request?.headers).toMatchObject({ 'user-agent': 'Posthorn/1', 'x-key': 'k' });
    const { 'webhook-id': id, 'webhook-signature': signature } = request?.headers ?? {};
    expect(request?.headers['webhook-timestamp']).toBe('1700000000');
    const verifier = new Verifier(secretFromBytes(Buffer.alloc(32, 7)));
    expect(signature).toBe(
      verifier.sign(String(id), new Date(1_700_000_000_000), payload.toString()),
    );
  });

  test('has its number, its trigger and its start time', async () => {
    answer = (response) => {
      nowMs += 42;
      response.writeHead(200, { 'content-type': 'text/x', 'set-cookie': 'a=1' }).end('thanks');
    };
    const attempt = await send();
    expect(attempt).toMatchObject({
      number: 3,
      trigger: 'retry',
      startedAtMs: WALL_MS,
      durationMs: 42,
    });
    expect(attempt).toMatchObject({ outcome: 'success', statusCode: 200, response: 'thanks' });
    expect(attempt.responseHeaders).toContainEqual({ key: 'content-type', value: 'text/x' });
    expect(JSON.stringify(attempt.responseHeaders)).not.toContain('a=1');
  });

  test.each([
    [200, 'success'],
    [204, 'success'],
    [299, 'success'],
    [400, 'http_4xx'],
    [410, 'http_4xx'],
    [429, 'http_429'],
    [500, 'http_5xx'],
    [503, 'http_5xx'],
  ])('with status %d is %s', async (status, outcome) => {
    answer = (response) => response.writeHead(status).end();
    expect(await send()).toMatchObject({ outcome, statusCode: status });
  });

  test.each([301, 302, 307, 308])('does not follow a %d', async (status) => {
    answer = (response) => response.writeHead(status, { location: `${origin}/elsewhere` }).end();
    expect(await send()).toMatchObject({ outcome: 'http_3xx', statusCode: status });
    expect(requests).toHaveLength(1);
  });

  test('takes its outcome from the response, not from an informational one before it', async () => {
    answer = (response) => {
      response.writeProcessing();
      response.writeHead(500).end();
    };
    expect(await send()).toMatchObject({ outcome: 'http_5xx', statusCode: 500 });
  });

  test.each([
    { key: 'X-A', value: 'a\r\nX-Evil: 1' },
    { key: 'X A', value: 'a' },
    { key: 'X-A', value: 'a\0' },
  ])('is not sent with the invalid header %j, should the database contain one', async (header) => {
    const attempt = await send([header]);
    expect([attempt.statusCode, requests]).toEqual([null, []]);
    expect(attempt.outcome).not.toBe('success');
  });

  test('is aborted, and nothing is sent, when a later version has stored its authMethod', async () => {
    const authMethod = { method: 'of tomorrow' } as unknown as AuthMethod;
    const nothing = { statusCode: null, response: null, responseHeaders: [] };
    expect(await send([], authMethod)).toMatchObject({ outcome: 'aborted', ...nothing });
    expect(requests).toEqual([]);
  });

  test('keeps 4 KiB of the response body', async () => {
    answer = (response) => response.end('x'.repeat(10_000));
    expect((await send()).response).toBe('x'.repeat(4_096));
  });

  test('to an endpoint that refuses the connection is a connect_error', async () => {
    await new Promise((resolve) => server.close(resolve));
    const attempt = await send();
    expect(attempt).toMatchObject({ outcome: 'connect_error', statusCode: null, response: null });
  });
});
