import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler } from 'express';
import fc from 'fast-check';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  beginPages,
  charsUpTo,
  jsonPieces,
  type Pages,
  PIECE_CHARS,
  sendJson,
  type Frame,
  sendPages,
} from './send-json.ts';

const long = 'x'.repeat(PIECE_CHARS);

/** Values of the kinds that responses have. Some texts are so long that what has them is divided. */
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constant(long));
const leaf = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null));
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 6 }),
  object: fc.dictionary(fc.string(), fc.oneof(tie('value'), fc.constant(undefined)), {
    maxKeys: 6,
  }),
}));

describe('the pieces of a response', () => {
  test('are its JSON, whatever it is', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect([...jsonPieces(value)].join('')).toBe(JSON.stringify(value));
      }),
    );
  });

  test('are short for a long list of short entries, also where each entry has a list', () => {
    const entries = Array.from({ length: 5_000 }, (_, n) => ({ id: `dlv_${n}`, attemptCount: n }));
    const data = [
      { deliveries: entries },
      { deliveries: entries.slice(0, 10) },
      { deliveries: entries },
    ];
    const pieces = [...jsonPieces({ success: true, data })];
    expect(pieces.join('')).toBe(JSON.stringify({ success: true, data }));
    for (const piece of pieces) expect(piece.length).toBeLessThan(2 * PIECE_CHARS);
    expect(pieces.length).toBeGreaterThan(4);
  });

  test('are weighed no further than it takes to know that there are several', () => {
    let read = 0;
    const entries = Array.from({ length: 10_000 }, () => ({
      get text() {
        read += 1;
        return 'x'.repeat(1_000);
      },
    }));
    expect(charsUpTo(entries, 10_000)).toBeGreaterThan(10_000);
    expect(read).toBeLessThan(20);
  });
});

test.each([3, 30_000])('a list of %i numbers is sent as it is', async (count) => {
  const body = { data: Array.from({ length: count }, (_, n) => n), nextCursor: null };
  let length = 0;
  const app = express().get('/', async (_request, response) => {
    length = await sendJson(response.status(202), body);
  });
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`);
  expect([response.status, await response.json()]).toEqual([202, body]);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(length).toBe(JSON.stringify(body).length);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('send pages', () => {
  const OK = { status: 200, message: 'Found' } as const;

  let server: Server;
  let port: number;
  let pages: () => Pages;
  let frame: Frame | undefined;
  let failed: unknown;
  let sentLengths: number[];

  beforeEach(async () => {
    failed = null;
    frame = undefined;
    sentLengths = [];
    const onError: ErrorRequestHandler = (error, _request, response, next) => {
      failed = error;
      response.destroy();
      next();
    };
    const app = express()
      .get('/', (_request, response) =>
        sendPages(response, { ...OK, frame }, pages(), (length) => {
          sentLengths.push(length);
        }),
      )
      .use(onError);
    server = createServer(app).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    ({ port } = server.address() as AddressInfo);
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const read = () => fetch(`http://127.0.0.1:${port}/`);

  async function* parts(...values: unknown[][]): AsyncGenerator<unknown[]> {
    for (const value of values) yield await Promise.resolve(value);
  }

  describe('a list that is sent part by part', () => {
    test.each([
      [
        [[1, 2], [3]],
        [1, 2, 3],
      ],
      [
        [[], [1], [], [2]],
        [1, 2],
      ],
      [[], []],
    ])('of %j is one array', async (given: number[][], data) => {
      pages = () => parts(...given);
      const answer = await read();
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await answer.json()).toEqual({ success: true, message: 'Found', data });
    });

    test.each([
      [[[['a', 1]], [['b', { c: [2] }]]], { a: 1, b: { c: [2] } }],
      [[[], [['__proto__', 1]]], JSON.parse('{"__proto__":1}')],
      [[], {}],
    ])('of the fields %j is one object within its frame', async (given: unknown[][][], all) => {
      pages = () => parts(...given);
      frame = (fields) => ({ title: '{}', webhooks: fields });
      const answer = await read();
      const data = { title: '{}', webhooks: all as unknown };
      expect(await answer.json()).toEqual({ success: true, message: 'Found', data });
    });

    test('tells the length of each part that it sends', async () => {
      pages = () => parts([12, 3], [], [4]);
      await (await read()).text();
      expect(sentLengths).toEqual([4, 1]);
    });

    test('breaks off when a part cannot be read', async () => {
      pages = async function* broken() {
        yield await Promise.resolve([1]);
        throw new Error('MongoDB is away');
      };
      await expect(read().then((answer) => answer.text())).rejects.toThrow();
      expect(failed).toEqual(new Error('MongoDB is away'));
    });

    describe('to a client that does not read', () => {
      const PART = ['x'.repeat(1_000_000)];
      let given: number;
      let isClosed: boolean;

      beforeEach(() => {
        [given, isClosed] = [0, false];
        pages = async function* endless() {
          try {
            for (; given < 1_000; given += 1) yield await Promise.resolve(PART);
          } finally {
            isClosed = true;
          }
        };
      });

      test('holds one part beside what the connection has taken, and ends when the client is gone', async () => {
        const client = connect(port, '127.0.0.1');
        client.pause();
        client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
        let before = -1;
        await eventually('reading stops', () => {
          const isSame = given > 0 && given === before;
          before = given;
          return isSame;
        });
        // The buffers of both sockets take a few megabytes, not a thousand.
        expect(given).toBeLessThan(100);
        client.destroy();
        await eventually('the reading is closed', () => isClosed);
      });
    });
  });

  const TWENTY_FIVE = Array.from({ length: 25 }, (_, index) => index + 1);

  describe('the beginning of a list', () => {
    test.each([
      [[], []],
      [[[1, 2]], [1, 2]],
      [
        [[1, 2], [3]],
        [1, 2, 3],
      ],
    ])('of %j is all of it', async (given: number[][], first) => {
      expect(await beginPages(parts(...given))).toEqual({ first, rest: null });
    });

    test('of more than 25 entries is sent with the rest', async () => {
      const { first, rest } = await beginPages(parts(TWENTY_FIVE, [26], [27]));
      expect(first).toHaveLength(26);
      expect(await Array.fromAsync(rest ?? [])).toEqual([[...TWENTY_FIVE, 26], [27]]);
    });

    test('closes the reading when the rest is not taken to its end', async () => {
      let isClosed = false;
      async function* closing() {
        try {
          yield* parts(TWENTY_FIVE, [26], [27]);
        } finally {
          isClosed = true;
        }
      }
      const { rest } = await beginPages(closing());
      for await (const part of rest ?? []) if (part[0] === 1) break;
      expect(isClosed).toBe(true);
    });
  });
});
