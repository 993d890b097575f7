import { describe, expect, test } from '@jest/globals';
import express from 'express';
import fc from 'fast-check';
import type { AddressInfo } from 'node:net';
import { charsUpTo, jsonPieces, PIECE_CHARS, sendJson } from './send-json.ts';

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
