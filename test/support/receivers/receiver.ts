import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request that the endpoint got. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  atMs: number;
}

/** Responds to one request; `nth` counts the requests of this message from 1. */
export type Answer = (response: ServerResponse, received: Received, nth: number) => void;

export interface Receiver {
  url: string;
  received: Received[];
  /** Returns the requests of one message, oldest first. */
  of: (messageId: string) => Received[];
  answerWith: (answer: Answer) => void;
  /** Leaves every request without a response, until the returned function responds to it and to each later one. */
  hold: () => (status: number) => void;
  close: () => Promise<void>;
}

/** Starts an endpoint on loopback that records its requests and responds with 200 until `answerWith`. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let answer: Answer = (response) => response.writeHead(200).end('ok');
  const of = (messageId: string): Received[] =>
    received.filter(({ headers }) => headers['webhook-id'] === messageId);

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const got = { method, path, headers, body: Buffer.concat(chunks), atMs: Date.now() };
      received.push(got);
      answer(response, got, of(String(headers['webhook-id'])).length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    of,
    answerWith: (next) => {
      answer = next;
    },
    hold() {
      const held: ServerResponse[] = [];
      answer = (response) => void held.push(response);
      return (status) => {
        answer = (response) => response.writeHead(status).end();
        for (const response of held.splice(0)) response.writeHead(status).end();
      };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** Responds with this status to the first `times` requests of a message, then with 200. */
export function failing(times: number, status = 500): Answer {
  return (response, _received, nth) => {
    response.writeHead(nth <= times ? status : 200).end(nth <= times ? 'not now' : 'ok');
  };
}
