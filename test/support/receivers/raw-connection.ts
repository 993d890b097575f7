import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection for bytes that no HTTP client would send. */
export interface RawConnection {
  socket: Socket;
  /** Waits until the received text matches `pattern` and returns it; throws when the connection is closed before. */
  until: (pattern: RegExp) => Promise<string>;
  /** Resolves when the other side has closed it, with or without a reset. */
  closed: Promise<void>;
}

/** Matches the end of a response whose body is an envelope, in chunks when it is a long one. */
export const ENVELOPE = /\r\n\r\n(?:\{.*\}|[0-9a-f]+\r\n\{.*\r\n0\r\n\r\n)$/s;

/** Connects to a port of this machine and sends `text` unchanged. */
export function openConnection(port: number, text: string): RawConnection {
  const socket = connect({ port, host: '127.0.0.1' });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve();
    });
  });
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('error', () => undefined);
  socket.write(text);
  return {
    socket,
    closed,
    async until(pattern) {
      while (!pattern.test(received)) {
        if (socket.closed) throw new Error(`closed after: ${received}`);
        await Promise.race([once(socket, 'data').catch(() => undefined), closed]);
      }
      return received;
    },
  };
}

export interface RawAnswer {
  status: number;
  head: string;
  body: { success: boolean; code: string; requestId: string; message: string };
}

/** Parses the last response that a connection received. */
export function parseAnswer(received: string): RawAnswer {
  const last = received.slice(received.lastIndexOf('HTTP/1.1 '));
  const endOfHead = last.indexOf('\r\n\r\n');
  const head = last.slice(0, endOfHead);
  const sent = last.slice(endOfHead + 4);
  const body = /\r\ntransfer-encoding: chunked/i.test(head) ? joinChunks(Buffer.from(sent)) : sent;
  return { status: Number(head.slice(9, 12)), head, body: JSON.parse(body) as RawAnswer['body'] };
}

function joinChunks(sent: Buffer): string {
  const texts: string[] = [];
  for (let at = 0; at < sent.length;) {
    const start = sent.indexOf('\r\n', at) + 2;
    const end = start + Number.parseInt(sent.toString('latin1', at, start), 16);
    texts.push(sent.toString('utf8', start, end));
    at = end + 2;
  }
  return texts.join('');
}
