import { expect, test } from '@jest/globals';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { keepUnreadTogether } from './keep-unread.ts';

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
