import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler } from 'express';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { beginPages, sendPages, type Pages } from './send-pages.ts';

const OK = { status: 200, message: 'Found' } as const;

let server: Server;
let port: number;
let pages: () => Pages;
let failed: unknown;
let sentLengths: number[];

beforeEach(async () => {
  failed = null;
  sentLengths = [];
  const onError: ErrorRequestHandler = (error, _request, response, next) => {
    failed = error;
    response.destroy();
    next();
  };
  const app = express()
    .get('/', (_request, response) =>
      sendPages(response, OK, pages(), (length) => void sentLengths.push(length)),
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

const FIFTY = Array.from({ length: 50 }, (_, index) => index + 1);

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

  test('of more than 50 entries is sent with the rest', async () => {
    const { first, rest } = await beginPages(parts(FIFTY, [51], [52]));
    expect(first).toHaveLength(51);
    expect(await Array.fromAsync(rest ?? [])).toEqual([[...FIFTY, 51], [52]]);
  });

  test('closes the reading when the rest is not taken to its end', async () => {
    let isClosed = false;
    async function* closing() {
      try {
        yield* parts(FIFTY, [51], [52]);
      } finally {
        isClosed = true;
      }
    }
    const { rest } = await beginPages(closing());
    for await (const part of rest ?? []) if (part[0] === 1) break;
    expect(isClosed).toBe(true);
  });
});
