import { afterEach, describe, expect, test } from '@jest/globals';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyWebhook as expressWebhook, webhookOf as expressEvent } from './express.ts';
import { verifyWebhook as fastifyWebhook, webhookOf as fastifyEvent } from './fastify.ts';
import { receiveWebhooks } from './fetch.ts';
import { verifyWebhook as honoWebhook, webhookOf as honoEvent } from './hono.ts';
import type { ReceiveOptions } from './receive.ts';
import { sign } from './index.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = '{"n":1.0,"name":"é"}';

type Send = (request: Request) => Promise<Response>;

interface App {
  send: Send;
  close?: () => Promise<unknown>;
}

let opened: App[] = [];

afterEach(async () => {
  await Promise.all(opened.map(async ({ close }) => close?.()));
  opened = [];
});

async function served(server: Server): Promise<App> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    send: sendTo(server),
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

/** Sends requests to a server on loopback, whatever their host is. */
function sendTo(server: Server): Send {
  const { port } = server.address() as AddressInfo;
  return async (request) => {
    const body = await request.arrayBuffer();
    const { method, headers } = request;
    return fetch(`http://127.0.0.1:${port}/hook`, { method, headers, body });
  };
}

/** A receiver in each framework. Its route answers with the id and the body; `isParsedBefore` puts a JSON parser first. */
const FRAMEWORKS: Record<
  string,
  (options: ReceiveOptions, isParsedBefore?: boolean) => App | Promise<App>
> = {
  Express: (options, isParsedBefore = false) => {
    const app = express();
    if (isParsedBefore) app.use(express.json());
    app.post('/hook', expressWebhook(options), (request, response) => {
      const { id, payload } = expressEvent(request);
      response.json({ id, payload, body: request.body });
    });
    return served(createServer(app));
  },
  Fastify: (options, isParsedBefore = false) => {
    const plugin = fastifyWebhook(options);
    const app = fastify();
    app.register(async (hooks) => {
      await hooks.register(plugin);
      if (isParsedBefore) {
        hooks.addContentTypeParser('application/json', { parseAs: 'string' }, (_r, body, done) => {
          done(null, JSON.parse(String(body)));
        });
      }
      hooks.post('/hook', (request) => {
        const { id, payload } = fastifyEvent(request);
        return Promise.resolve({ id, payload, body: request.body });
      });
    });
    return app
      .listen({ port: 0, host: '127.0.0.1' })
      .then(() => ({ send: sendTo(app.server), close: () => app.close() }));
  },
  Hono: (options, isParsedBefore = false) => {
    const app = new Hono();
    if (isParsedBefore) {
      app.use(async (c, next) => {
        await c.req.json();
        await next();
      });
    }
    app.post('/hook', honoWebhook(options), async (c) => {
      const { id, payload } = honoEvent(c);
      return c.json({ id, payload, body: await c.req.json<unknown>() });
    });
    return { send: async (request) => app.request(request) };
  },
  fetch: (options, isParsedBefore = false) => {
    const receive = receiveWebhooks(options, ({ id, payload }) =>
      Response.json({ id, payload, body: payload }),
    );
    return {
      send: async (request) => {
        if (isParsedBefore) await request.json();
        return receive(request);
      },
    };
  },
};

async function delivery(body = BODY, headers: Record<string, string> = {}): Promise<Request> {
  const signed = await sign({ payload: body, secret: SECRET, id: 'msg_1' });
  return new Request('http://localhost/hook', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...signed, ...headers },
    body,
  });
}

describe.each(Object.entries(FRAMEWORKS))('a receiver with %s', (_name, start) => {
  async function answerOf(
    request: Request,
    options: Partial<ReceiveOptions> = {},
    isParsedBefore = false,
  ): Promise<{ status: number; text: string }> {
    const app = await start({ secrets: [SECRET], ...options }, isParsedBefore);
    opened.push(app);
    const response = await app.send(request);
    return { status: response.status, text: await response.text() };
  }

  test('passes on a good delivery, with its payload as the body', async () => {
    const { status, text } = await answerOf(await delivery());
    expect(status).toBe(200);
    const payload = { n: 1, name: 'é' };
    expect(JSON.parse(text)).toEqual({ id: 'msg_1', payload, body: payload });
  });

  test('answers 401 to a wrong signature and calls onRefused [security]', async () => {
    const reasons: string[] = [];
    const onRefused: ReceiveOptions['onRefused'] = ({ reason }) => reasons.push(reason);
    const { status, text } = await answerOf(await delivery(BODY, { 'webhook-id': 'msg_2' }), {
      onRefused,
    });
    expect([status, text]).toEqual([401, expect.stringMatching(/^no_match: /)]);
    expect(reasons).toEqual(['no_match']);
  });

  test('answers 200 to an event that was handled before, and does not handle it', async () => {
    const { status, text } = await answerOf(await delivery(), { seen: (id) => id === 'msg_1' });
    expect([status, text]).toEqual([200, 'seen_before: msg_1 was handled before.']);
  });

  test('answers 400 to a body that is not JSON', async () => {
    expect((await answerOf(await delivery('order=17'))).status).toBe(400);
  });

  test('answers 413 to a body over its limit [security]', async () => {
    const body = JSON.stringify('x'.repeat(100_000));
    expect((await answerOf(await delivery(body), { maxBodyBytes: 50_000 })).status).toBe(413);
    expect((await answerOf(await delivery(body), { maxBodyBytes: 100_002 })).status).toBe(200);
  });

  test('answers 500 with the line to change when the body was parsed before', async () => {
    const { status, text } = await answerOf(await delivery(), {}, true);
    expect([status, text]).toEqual([500, expect.stringMatching(/^body_was_parsed: .*[`]/)]);
  });

  test('answers 503 when the keys are unavailable', async () => {
    const headers = { 'webhook-signature': `v1a,${Buffer.alloc(64).toString('base64')}` };
    const { status } = await answerOf(await delivery(BODY, headers), {
      jwksUrl: 'https://unavailable.example/keys',
      fetch: () => Promise.reject(new TypeError('fetch failed')),
    });
    expect(status).toBe(503);
  });

  test('does not start without secrets', () => {
    expect(() => start({})).toThrow('secrets and jwksUrl are missing');
  });
});

describe('a receiver with Express', () => {
  test.each<[string, express.RequestHandler]>([
    ['express.raw', express.raw({ type: 'application/json' })],
    ['express.text', express.text({ type: 'application/json' })],
    [
      'a host that keeps rawBody',
      express.json({
        verify: (request, _response, body) => {
          Object.assign(request, { rawBody: body });
        },
      }),
    ],
  ])('accepts the bytes of %s', async (_which, parser) => {
    const app = express();
    app.post('/hook', parser, expressWebhook({ secrets: [SECRET] }), (request, response) => {
      response.json(expressEvent(request).payload);
    });
    const receiver = await served(createServer(app));
    opened.push(receiver);
    expect(await (await receiver.send(await delivery())).json()).toEqual({ n: 1, name: 'é' });
  });

  test('passes on errors of seen, and has no event of a request that was not verified', async () => {
    const errors: string[] = [];
    const app = express();
    const seen = (): never => {
      throw new Error('redis is away');
    };
    app.post('/hook', expressWebhook({ secrets: [SECRET], seen }));
    // Express takes a function with four parameters for a handler of errors.
    const handle: express.ErrorRequestHandler = (error: Error, request, response, next) => {
      expect(next).toBeDefined();
      errors.push(error.message);
      expect(() => expressEvent(request)).toThrow('verifyWebhook');
      response.sendStatus(500);
    };
    app.use(handle);
    const receiver = await served(createServer(app));
    opened.push(receiver);
    expect((await receiver.send(await delivery())).status).toBe(500);
    expect(errors).toEqual(['redis is away']);
  });

  test('answers while a sender that is over the limit still sends, and closes the connection [security]', async () => {
    const app = express();
    app.post('/hook', expressWebhook({ secrets: [SECRET], maxBodyBytes: 1_000 }));
    const server = createServer(app);
    opened.push(await served(server));
    const { port } = server.address() as AddressInfo;
    const answer = await new Promise((resolve, reject) => {
      const request = httpRequest({ port, host: '127.0.0.1', path: '/hook', method: 'POST' });
      request.on('response', ({ statusCode, headers }) => {
        resolve([statusCode, headers.connection]);
        request.destroy();
      });
      request.on('error', reject);
      request.write('x'.repeat(2_000));
    });
    expect(answer).toEqual([413, 'close']);
  });
});

describe('a receiver with fetch', () => {
  test('answers 204 when its handler returns nothing, and passes other arguments on', async () => {
    const got: unknown[] = [];
    const receive = receiveWebhooks({ secrets: [SECRET] }, ({ id }, _request, env: string) => {
      got.push(id, env);
      return undefined;
    });
    expect((await receive(await delivery(), 'env')).status).toBe(204);
    expect(got).toEqual(['msg_1', 'env']);
  });
});
