import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import type { AuthMethod, Webhook } from '@posthorn/domain/webhook.ts';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { Webhook as Verifier } from 'standardwebhooks';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { Connections } from './connect/connections.ts';
import { openConnections } from '../../../../test/support/process/lone-sender.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import {
  createDeadlineSweep,
  createResponseCapture,
  createSendWebhook,
  type DeadlineSweep,
  safeHeaders,
  type WithDeadline,
} from './send-webhook.ts';

describe('send webhook', () => {
  const NOW_MS = 1_700_000_000_999;
  const policy = { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true };
  const payload = Buffer.from('{"n":12345678901234567890, "é":1e400}');
  const due = sampleDue({
    messageId: 'msg_01hf2m6q7xabcdefghjkmnpqrs',
    attemptNumber: 3,
    trigger: 'retry',
  });

  let nowMs = 0;
  let connections: Connections;
  let deadlines: DeadlineSweep;
  let server: Server;
  let origin = '';
  let answer: (response: ServerResponse, request: IncomingMessage) => void;
  let requests: { request: IncomingMessage; body: Buffer }[] = [];

  beforeEach(async () => {
    [nowMs, requests] = [0, []];
    answer = (response) => response.end('ok');
    connections = openConnections({
      policy,
      hosts: createHostResolver({ maxBytes: 100_000 }),
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
    await connections.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  async function send(fields: Partial<Webhook> = {}) {
    const webhook = sampleWebhook(1, {
      url: `${origin}/hook?a=1`,
      secret: secretFromBytes(Buffer.alloc(32, 7)),
      customHeaders: [],
      authMethod: { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' },
      ...fields,
    });
    const post = createSendWebhook({
      agentOf: () => connections.agentOf(null),
      deadlines,
      timeoutMs: 15_000,
      userAgent: 'Posthorn/1',
      nowMs: () => NOW_MS,
      monotonicMs: () => nowMs,
    });
    const attempt = await post(due, payload, {
      kind: 'opened',
      webhook,
      signer: signerOf(webhook),
      origin,
      path: '/hook?a=1',
      appHeld: null,
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

    test('ends after the timeout of its webhook', async () => {
      answer = () => {
        nowMs = 2_000;
        deadlines.tick();
      };
      expect(await send({ timeoutSeconds: 2 })).toMatchObject({
        outcome: 'timeout',
        durationMs: 2_000,
      });
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
        startedAtMs: NOW_MS,
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
    ])(
      'is not sent with the invalid header %j, should the database contain one',
      async (header) => {
        const attempt = await send({ customHeaders: [header] });
        expect([attempt.statusCode, requests]).toEqual([null, []]);
        expect(attempt.outcome).not.toBe('success');
      },
    );

    test('is aborted, and nothing is sent, when a later version has stored its authMethod', async () => {
      const authMethod = { method: 'of tomorrow' } as unknown as AuthMethod;
      const nothing = { statusCode: null, response: null, responseHeaders: [] };
      expect(await send({ authMethod })).toMatchObject({ outcome: 'aborted', ...nothing });
      expect(requests).toEqual([]);
    });

    test('keeps 4 KiB of the response body', async () => {
      answer = (response) => response.end('x'.repeat(10_000));
      expect((await send()).response).toBe('x'.repeat(4_096));
    });

    test('an attempt to an endpoint that refuses the connection is a connect_error', async () => {
      await new Promise((resolve) => server.close(resolve));
      const attempt = await send();
      expect(attempt).toMatchObject({ outcome: 'connect_error', statusCode: null, response: null });
    });
  });
});

describe('the capture of a response body [security]', () => {
  test('keeps the first 4 KiB, also when they come in pieces', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(4_095, 'a'))).toBe(true);
    expect(capture.add(Buffer.from('bcd'))).toBe(true);
    expect(capture.add(Buffer.from('efg'))).toBe(true);
    expect(capture.text()).toBe(`${'a'.repeat(4_095)}b`);
  });

  test('asks for no more once 64 KiB were read', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(65_536))).toBe(true);
    expect(capture.add(Buffer.alloc(1))).toBe(false);
  });

  test('keeps 4 KiB of a chunk that is larger than all that is read', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(1_000_000, 'x'))).toBe(false);
    expect(capture.text()).toBe('x'.repeat(4_096));
  });

  test('copies chunks, so that the socket may reuse its buffer', () => {
    const capture = createResponseCapture();
    const chunk = Buffer.from('before');
    capture.add(chunk);
    chunk.fill('x');
    expect(capture.text()).toBe('before');
  });

  test('asks for no more after many chunks of one byte, and for all of a body in pieces of four', () => {
    const dripped = createResponseCapture();
    const answers = Array.from({ length: 1_366 }, () => dripped.add(Buffer.from('x')));
    expect(answers.indexOf(false)).toBe(1_365);
    expect(dripped.text()).toBe('x'.repeat(1_366));
    const slow = createResponseCapture();
    expect(Array.from({ length: 16_384 }, () => slow.add(Buffer.alloc(4))).every(Boolean)).toBe(
      true,
    );
  });

  test('returns empty text when no body came', () => {
    expect(createResponseCapture().text()).toBe('');
  });

  test('decodes a character that is split over two chunks, and replaces bytes that are not UTF-8', () => {
    const capture = createResponseCapture();
    const [first, ...others] = Buffer.from('é');
    capture.add(Buffer.from([first ?? 0]));
    capture.add(Buffer.from([...others, 0xff]));
    expect(capture.text()).toBe('é\ufffd');
  });
});

describe('the text of a compressed body [security]', () => {
  const json = JSON.stringify({ error: 'é'.repeat(500) });
  function textOf(body: Buffer, encoding: string, keptBytes?: number): string | null {
    const capture = createResponseCapture(keptBytes);
    capture.add(body);
    return capture.text(encoding);
  }

  test.each<[string, Buffer]>([
    ['gzip', gzipSync(json)],
    [' X-GZIP', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['deflate', deflateRawSync(json)],
    ['deflate', deflateRawSync(json, { level: 0 })],
    ['identity', Buffer.from(json)],
    ['', Buffer.from(json)],
  ])('is what was compressed: %j', (encoding, body) => {
    expect(textOf(body, encoding)).toBe(json);
  });

  test('is its beginning when only the beginning of the body is kept', () => {
    const text = Array.from({ length: 9_000 }, (_, index) => index).join();
    expect(text.startsWith(textOf(gzipSync(text), 'gzip') ?? '-')).toBe(true);
    expect(textOf(gzipSync(text), 'gzip')).toHaveLength(4_096);
  });

  test.each<[string, (text: string) => Buffer]>([
    ['gzip', (text) => gzipSync(text)],
    ['deflate', (text) => deflateSync(text)],
    ['deflate', (text) => deflateRawSync(text)],
  ])('is its beginning when it is far larger than its body: %s', (encoding, compress) => {
    const errors = Array.from({ length: 3_000 }, (_, index) => ({
      field: index % 7,
      error: 'missing',
    }));
    for (const text of [JSON.stringify(errors), 'x'.repeat(4_000_000)]) {
      expect(textOf(compress(text), encoding)).toBe(text.slice(0, 4_096));
    }
  });

  test.each<[string, Buffer]>([
    ['br', brotliCompressSync(json)],
    ['gzip, gzip', gzipSync(gzipSync(json))],
    ['gzip', Buffer.from(json)],
    ['deflate', gzipSync(json)],
  ])('is none for %s that is not known or wrong', (encoding, body) => {
    expect(textOf(body, encoding)).toBeNull();
  });

  test('is empty when no body came', () => {
    expect(createResponseCapture().text('gzip')).toBe('');
  });
});

describe('the response headers that are kept [security]', () => {
  test('include none that may carry a session or a secret', () => {
    const headers = {
      'Content-Type': 'text/plain',
      server: 'x',
      'retry-after': '5',
      date: undefined,
    };
    const secrets = {
      'set-cookie': ['a=1'],
      authorization: 'Basic x',
      'x-api-key': 'k',
      link: '<x>',
    };
    expect(safeHeaders({ ...headers, ...secrets })).toEqual([
      { key: 'Content-Type', value: 'text/plain' },
      { key: 'server', value: 'x' },
      { key: 'retry-after', value: '5' },
    ]);
  });

  test('are cut at 256 characters', () => {
    expect(safeHeaders({ server: 'x'.repeat(300) })).toEqual([
      { key: 'server', value: 'x'.repeat(256) },
    ]);
  });

  test('join a repeated header into one', () => {
    expect(safeHeaders({ via: ['a', 'b'] })).toEqual([{ key: 'via', value: 'a,b' }]);
  });
});

describe('deadline sweep', () => {
  let nowMs = 0;
  let sweep: DeadlineSweep;
  let expired: string[] = [];

  beforeEach(() => {
    jest.useFakeTimers();
    nowMs = 0;
    expired = [];
    sweep = createDeadlineSweep(() => nowMs);
  });

  afterEach(() => {
    sweep.stop();
    jest.useRealTimers();
  });

  function add(name: string, deadlineAtMs: number, timeoutMs = 100): WithDeadline {
    const work = { timeoutMs, deadlineAtMs, expire: () => expired.push(name) };
    sweep.add(work);
    return work;
  }

  describe('the deadline sweep', () => {
    test('expires what has passed its deadline, oldest first and once', () => {
      add('a', 100);
      add('b', 200);
      add('c', 201);
      nowMs = 200;
      sweep.tick();
      sweep.tick();
      expect(expired).toEqual(['a', 'b']);
    });

    test('expires what has a short timeout behind what has a long one', () => {
      add('long', 15_000, 15_000);
      const removed = add('removed', 1_000, 1_000);
      add('short', 1_001, 1_000);
      sweep.remove(removed);
      nowMs = 1_001;
      sweep.tick();
      expect(expired).toEqual(['short']);
      nowMs = 15_000;
      sweep.tick();
      expect(expired).toEqual(['short', 'long']);
    });

    test('expires nothing before its deadline', () => {
      add('a', 100);
      nowMs = 99.9;
      sweep.tick();
      expect(expired).toEqual([]);
    });

    test('does not expire what was removed before its deadline', () => {
      const a = add('a', 100);
      add('b', 100);
      sweep.remove(a);
      nowMs = 500;
      sweep.tick();
      expect(expired).toEqual(['b']);
    });

    test('does not expire what an earlier expiry has removed', () => {
      const b: WithDeadline = {
        timeoutMs: 100,
        deadlineAtMs: 100,
        expire: () => expired.push('b'),
      };
      const a: WithDeadline = {
        timeoutMs: 100,
        deadlineAtMs: 100,
        expire: () => {
          expired.push('a');
          sweep.remove(a);
          sweep.remove(b);
        },
      };
      sweep.add(a);
      sweep.add(b);
      nowMs = 100;
      sweep.tick();
      expect(expired).toEqual(['a']);
    });

    test('sweeps ten times a second until it is stopped', () => {
      add('a', 50);
      add('b', 1_000);
      nowMs = 100;
      jest.advanceTimersByTime(100);
      expect(expired).toEqual(['a']);
      sweep.stop();
      nowMs = 2_000;
      jest.advanceTimersByTime(2_000);
      expect(expired).toEqual(['a']);
    });
  });
});
