import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { collectGarbage } from '../../../../test/support/process/collect-garbage.ts';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../../../test/support/receivers/raw-connection.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  checkHead,
  createHardenedServer,
  keepUnreadTogether,
  type ServerBounds,
} from './harden-server.ts';

describe('harden server', () => {
  /** A request that is complete must not time out, however busy the machine is. */
  const BOUNDS = {
    headersTimeoutMs: 60_000,
    requestTimeoutMs: 60_000,
    checkEveryMs: 10,
    lingerMs: 30,
    silenceMs: 10_000,
  };
  /** Short, so that the timeouts for slow clients pass within milliseconds. */
  const IMPATIENT = { ...BOUNDS, headersTimeoutMs: 60, requestTimeoutMs: 120 };
  /** More than the buffers of both sides hold. */
  const LARGE = 64 * 1_048_576;
  const GET = 'GET / HTTP/1.1\r\nHost: a\r\n';
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\n';
  const HELD = 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n';

  let server: Server;
  /** Of `/held`, in the order of the requests. */
  let held: ServerResponse[];

  /**
   * Responds to GET without reading the body, to `/held` when the test does, to `/begin` with half a response, to `/later` when the client has closed its
   * sending side, to others after the body.
   */
  async function listen(bounds: ServerBounds): Promise<void> {
    held = [];
    server = createHardenedServer((request, response) => {
      const { url, headers } = request;
      if (url === '/target') response.end(JSON.stringify([url, headers.host]));
      // Node has seen the end by then.
      else if (url === '/later')
        request.socket.once('end', () => response.end(JSON.stringify([url])));
      else if (url === '/held') held.push(response);
      else if (url === '/begin') response.writeHead(200).write('half');
      else if (url === '/large') response.end(Buffer.alloc(LARGE));
      else if (request.method === 'GET') response.end('{"success":true}');
      else
        request
          .on('error', () => undefined)
          .on('end', () => response.end('{}'))
          .resume();
    }, bounds);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  function close(): void {
    server.closeAllConnections();
    server.close();
  }

  beforeEach(() => listen(BOUNDS));

  afterEach(close);

  function send(text: string): RawConnection {
    return openConnection((server.address() as AddressInfo).port, text);
  }

  /** Sends this, and checks the envelope and the end of the connection. */
  async function expectRefusal(text: string, status: number, code: string): Promise<void> {
    const { until, closed } = send(text);
    const response = parseAnswer(await until(ENVELOPE));
    await closed;
    const { success, requestId } = response.body;
    expect([response.status, success, response.body.code]).toEqual([status, false, code]);
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(response.head).toContain(`X-Request-Id: ${requestId}`);
    expect(response.head).toContain('Connection: close');
  }

  describe('the number of headers [security]', () => {
    const headers = (count: number): string =>
      Array.from({ length: count }, (_, n) => `x-${n}: y\r\n`).join('');

    test('is at most 100, that of the host included', async () => {
      await send(`${GET}${headers(99)}\r\n`).until(/"success":true/);
      const { until } = send(`${GET}${headers(100)}\r\n`);
      const { status, body } = parseAnswer(await until(ENVELOPE));
      expect([status, body.code]).toEqual([431, 'headers_too_large']);
    });
  });

  describe('an invalid request [security]', () => {
    test.each([
      ['no HTTP at all', 'nonsense\r\n\r\n', 400, 'malformed_request'],
      ['a bare line feed', 'GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n', 400, 'malformed_request'],
      [
        'two lengths',
        `${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
        400,
        'malformed_request',
      ],
      [
        'a length beside chunks',
        `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
        400,
        'malformed_request',
      ],
      [
        'CONNECT',
        'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n',
        501,
        'not_implemented',
      ],
      [
        'another transfer coding',
        `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
        501,
        'not_implemented',
      ],
      [
        'a transfer coding of HTTP/1.0',
        'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        400,
        'malformed_request',
      ],
      ['20,000 bytes of headers', `${GET}X: ${'x'.repeat(20_000)}`, 431, 'headers_too_large'],
    ])(
      'with %s gets the error envelope and a closed connection',
      async (_what, text, status, code) => {
        await expectRefusal(text, status, code);
      },
    );

    test.each([
      ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
      ['two hosts', `${GET}host: b\r\n\r\n`, 400, 'malformed_request'],
      ['one host twice', `${GET}Host: a\r\n\r\n`, 400, 'malformed_request'],
      ['an unknown Expect', `${GET}Expect: wonders\r\n\r\n`, 417, 'expectation_failed'],
    ])('with %s gets the error envelope', async (_what, text, status, code) => {
      const response = parseAnswer(await send(text).until(ENVELOPE));
      expect([response.status, response.body.code]).toEqual([status, code]);
    });

    test('is not one of HTTP/1.0 without a Host', async () => {
      expect(await send('GET / HTTP/1.0\r\n\r\n').until(/\}$/)).toContain(' 200 OK');
    });
  });

  test('a target in absolute form names the host and the path [security]', async () => {
    const head = 'GET http://b.example:81/target HTTP/1.1\r\nHost: a\r\n\r\n';
    expect(await send(head).until(/\]$/)).toContain('["/target","b.example:81"]');
  });

  describe('a client that closes its sending side [security]', () => {
    const LATER = '/later HTTP/1.1\r\nHost: a\r\n';

    test.each([
      ['after a request', `GET ${LATER}\r\n`],
      ['after a body', `POST ${LATER}Content-Length: 2\r\n\r\n{}`],
      ['after two requests', `${GET}\r\nGET ${LATER}\r\n`],
    ])('%s gets every response, and then the connection is closed', async (_when, text) => {
      const { socket, until, closed } = send(text);
      socket.end();
      await until(/\["\/later"\]$/);
      await closed;
    });

    test('a client that goes away frees its connection as soon as something is written to it', async () => {
      const begun = nextRequest();
      const { socket } = send('GET /begin HTTP/1.1\r\nHost: a\r\n\r\n');
      const served = (await begun).deref()?.socket;
      const closed = new Promise((resolve) => served?.once('close', resolve));
      socket.destroy();
      const writing = setInterval(() => served?.write('x'), 1);
      await closed;
      clearInterval(writing);
    });
  });

  describe('what is malformed behind requests that are pending [security]', () => {
    const GARBAGE = 'GARBAGE\x01 / HTTP/1.1\r\n\r\n';

    test.each([
      ['a request', GARBAGE, 400],
      ['a body', `${POST}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`, 400],
      ['CONNECT', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n', 501],
    ])('is refused behind their responses: %s', async (_what, text, status) => {
      const { socket, until, closed } = send(HELD + HELD + text);
      await eventually('both requests are there', () => held.length === 2);
      // It is an error again, and not refused twice.
      socket.write(GARBAGE);
      held[0]?.end('{"first":true}');
      await until(/"first":true/);
      held[1]?.write('{"second":');
      await until(/"second":/);
      held[1]?.end('true}');
      await closed;
      const received = await until(/$/);
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual([
        'HTTP/1.1 200',
        'HTTP/1.1 200',
        `HTTP/1.1 ${status}`,
      ]);
      expect(received).toContain('true}');
    });
  });

  test('what was responded to is not kept behind requests that keep coming [security]', async () => {
    const { socket, until } = send(HELD);
    const first = await nextHeld();
    for (let more = 0; more < 20; more += 1) {
      socket.write(HELD);
      await eventually('the next request', () => held.length === 2);
      held.shift()?.end('{}');
    }
    await until(/(\{\}.*){20}$/s);
    await eventually('the first response to be collected', () => {
      collectGarbage();
      return first.deref() === undefined;
    });
  });

  async function nextHeld(): Promise<WeakRef<ServerResponse>> {
    await eventually('the request', () => held.length === 1);
    const [first] = held;
    if (!first) throw new Error('There is no request');
    return new WeakRef(first);
  }

  describe('a request that does not end [security]', () => {
    beforeEach(async () => {
      close();
      await listen(IMPATIENT);
    });

    /** Sends this, and lets the timeouts for slow clients pass only after this response, however late it is. */
    async function respondedWith(response: RegExp, text: string): Promise<RawConnection> {
      Object.assign(server, { headersTimeout: 60_000, requestTimeout: 60_000 });
      const connection = send(text);
      await connection.until(response);
      server.headersTimeout = IMPATIENT.headersTimeoutMs;
      server.requestTimeout = IMPATIENT.requestTimeoutMs;
      return connection;
    }

    test.each([
      ['a header that never ends', `${GET}X`],
      ['no bytes', ''],
      ['a body that never ends', `${POST}Content-Length: 100\r\n\r\n{`],
    ])('with %s gets the error envelope and a closed connection', async (_what, text) => {
      await expectRefusal(text, 408, 'request_timeout');
    });

    test('gets the error envelope also on a connection that was used before', async () => {
      const { socket, until, closed } = await respondedWith(/"success":true/, `${GET}\r\n`);
      socket.write('GET / HTTP/1.1\r\n');
      expect(await until(/request_timeout/)).toContain('HTTP/1.1 408 Request Timeout');
      await closed;
    });

    test('ends a response that has begun without writing into it', async () => {
      const { socket, until, closed } = await respondedWith(
        /half/,
        'POST /begin HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n',
      );
      await closed;
      expect(await until(/half/)).not.toContain('408');
      expect(socket.closed).toBe(true);
    });
  });

  describe('the rest of a body whose response was sent early [security]', () => {
    const early = (): RawConnection => send(`${GET}Content-Length: 9\r\n\r\n`);

    test('may arrive for a while before the connection is closed', async () => {
      const { until, closed } = early();
      await until(/"success":true/);
      await closed;
    });

    test('leaves the connection usable when it arrives', async () => {
      close();
      await listen({ ...BOUNDS, requestTimeoutMs: 60_000, lingerMs: 60_000 });
      const { socket, until } = early();
      await until(/"success":true/);
      socket.write(`123456789${GET}\r\n`);
      await until(/"success":true.*"success":true/s);
    });
  });

  test('an idle connection holds nothing of its last request [security]', async () => {
    const begun = nextRequest();
    const { until } = send(`${POST}Content-Length: 2\r\n\r\n{}`);
    const request = await begun;
    await until(/\{\}$/);
    await eventually('the request to be collected', () => {
      collectGarbage();
      return request.deref() === undefined;
    });
  });

  async function nextRequest(): Promise<WeakRef<IncomingMessage>> {
    const [request] = (await once(server, 'request')) as [IncomingMessage];
    return new WeakRef(request);
  }

  test('a client that does not read its response is disconnected [security]', async () => {
    close();
    await listen({ ...BOUNDS, silenceMs: 50 });
    const { deaf, served } = await askUntilServed();
    if (!served.destroyed) await once(served, 'close');
    deaf.destroy();
  });

  /** On a busy machine a connection can be silent for `silenceMs` before its request is read. Then it asks again. */
  async function askUntilServed(): Promise<{ deaf: Socket; served: Socket }> {
    const deaf = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    deaf.pause().on('error', () => undefined);
    deaf.write('GET /large HTTP/1.1\r\nHost: a\r\n\r\n');
    const request = once(server, 'request') as Promise<[IncomingMessage]>;
    const closed = once(server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
    const served = await Promise.race([
      request.then(([{ socket }]) => socket),
      closed.then(() => null),
    ]);
    if (served) return { deaf, served };
    deaf.destroy();
    return askUntilServed();
  }

  test('a client that disconnects in the middle of a body does not affect others [security]', async () => {
    const { socket } = send(`${POST}Content-Length: 100\r\n\r\n{`);
    await once(server, 'request');
    socket.destroy();
    await send(`${GET}\r\n`).until(/"success":true/);
  });
});

function request(host: string | undefined, url = '/apps', method = 'GET'): IncomingMessage {
  const headers = host === undefined ? {} : { host };
  const rawHeaders = host === undefined ? [] : ['Accept', 'Host', 'Host', host];
  return { httpVersion: '1.1', headers, rawHeaders, url, method } as unknown as IncomingMessage;
}

describe('the host of a request', () => {
  test.each([
    ...['a', 'a.example', 'A.Example.', 'my_service:8080', 'a.example:', '192.0.2.7:80', '[::1]'],
    ...['[2001:db8::1]:8080', 'xn--bcher-kva.example', 'a%2dexample', 'a-.example'],
  ])('may be %s', (host) => {
    expect(checkHead(request(host))).toBeNull();
  });

  test.each([
    ...[
      '',
      ' ',
      'a b',
      'a/b',
      'a b/c',
      'a?b',
      'a#b',
      'user@a',
      'user:pw@a',
      'a:b',
      'a:80:80',
      ':80',
    ],
    ...[
      'a:99999',
      '[::1',
      '[::1]x',
      '[a]',
      '::1',
      'a%2fb',
      'a%',
      'b\u00fccher',
      'a, b',
      'a\\b',
      '<a>',
    ],
  ])('may not be %j', (host) => {
    expect(checkHead(request(host))).toBe('malformed');
  });
});

describe('the target of a request', () => {
  test.each([
    ['/apps?x=http://b', '/apps?x=http://b', 'a'],
    ['//b/apps', '//b/apps', 'a'],
    ['http://b/apps?x=1', '/apps?x=1', 'b'],
    ['HTTPS://b:8443/apps', '/apps', 'b:8443'],
    ['http://b', '/', 'b'],
    ['http://b?x=1', '/?x=1', 'b'],
  ])('%s is %s of a host', (url, path, host) => {
    const given = request('a', url);
    expect(checkHead(given)).toBeNull();
    expect([given.url, given.headers.host]).toEqual([path, host]);
  });

  test.each([
    'http://',
    'http:///apps',
    'http://user@b/apps',
    'http://b c/apps',
    'ftp://b/apps',
    '*',
    'b:80',
    '',
  ])('may not be %j', (url) => {
    expect(checkHead(request('a', url))).toBe('malformed');
  });

  test('may be * for OPTIONS', () => {
    expect(checkHead(request('a', '*', 'OPTIONS'))).toBeNull();
  });

  test('a target in absolute form excuses no wrong host', () => {
    expect(checkHead(request('a b', 'http://b/apps'))).toBe('malformed');
  });
});

function requestWith(chunks: readonly string[]): { request: IncomingMessage; taken: boolean[] } {
  const request = new IncomingMessage(new Socket());
  keepUnreadTogether(request);
  return { request, taken: chunks.map((chunk) => request.push(Buffer.from(chunk))) };
}

async function readOf(request: IncomingMessage): Promise<string[]> {
  const read: string[] = [];
  for await (const chunk of request) read.push(String(chunk));
  return read;
}

test('what arrives before the body is read is one chunk, and what follows comes as it is', async () => {
  const { request } = requestWith(['a', 'b', 'c']);
  const reading = readOf(request);
  request.push(Buffer.from('d'));
  request.push(null);
  expect(await reading).toEqual(['abc', 'd']);
});

test('a body that has ended before it is read is whole', async () => {
  const { request } = requestWith(['a', 'b']);
  request.push(null);
  expect(await readOf(request)).toEqual(['ab']);
});

test('a body that nobody reads is read no further after 16 KiB, in chunks of any size', () => {
  const { taken } = requestWith(Array<string>(16_385).fill('x'));
  expect(taken.indexOf(false)).toBe(16_383);
});
