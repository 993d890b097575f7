import { PassThrough } from 'node:stream';
import type { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { answerRequests, type ReceivedRequest } from './receivers.ts';

const request = (n: number, body: string): string =>
  `POST /${n} HTTP/1.1\r\nhost: a\r\nWebhook-Id: msg_${n}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Returns the requests read from a stream that arrives in pieces of this many bytes. */
async function seenOf(text: string, pieceBytes: number): Promise<ReceivedRequest[]> {
  const seen: ReceivedRequest[] = [];
  const socket = Object.assign(new PassThrough(), { setNoDelay: () => undefined });
  // A stream with the one other member of a socket that is used.
  answerRequests(socket as unknown as Socket, (each) => seen.push(each));
  for (let at = 0; at < text.length; at += pieceBytes) {
    socket.write(text.slice(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

describe('the requests of one connection', () => {
  it.each([1, 7, 64, 10_000])(
    'are seen each once when they arrive %i bytes at a time',
    async (n) => {
      const text = request(1, '{"a":1}') + request(2, '') + request(3, 'x'.repeat(50));
      expect(await seenOf(text, n)).toEqual([
        { path: '/1', messageId: 'msg_1' },
        { path: '/2', messageId: 'msg_2' },
        { path: '/3', messageId: 'msg_3' },
      ]);
    },
  );

  it('are reported only when their body is complete', async () => {
    expect(await seenOf(request(1, 'whole').slice(0, -1), 10_000)).toEqual([]);
  });
});
