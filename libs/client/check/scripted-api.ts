import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Got {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers one request. */
export type Step = (response: ServerResponse, got: Got) => void;

export interface ScriptedApi {
  baseUrl: string;
  got: Got[];
  /** One step for each request; the last one answers all others too. */
  answerWith: (...steps: Step[]) => void;
  close: () => Promise<void>;
}

/** Starts a server on loopback that records requests and answers them as a test says. */
export async function startScriptedApi(): Promise<ScriptedApi> {
  const got: Got[] = [];
  let steps: Step[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const each = { method, url, headers, body: Buffer.concat(chunks).toString() };
      got.push(each);
      const step = steps.length > 1 ? steps.shift() : steps[0];
      step?.(response, each);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    got,
    answerWith: (...next) => {
      steps = next;
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

const JSON_TYPE = { 'content-type': 'application/json' };

/** A success in its envelope. */
export const success =
  (data: unknown, more: object = {}): Step =>
  (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'x-request-id': 'request-1' });
    response.end(JSON.stringify({ success: true, message: 'Found', data, ...more }));
  };

/** A failure as the API describes it. */
export const failure =
  (status: number, code: string, headers: Record<string, string> = {}, more: object = {}): Step =>
  (response) => {
    response.writeHead(status, { ...JSON_TYPE, 'x-request-id': 'request-2', ...headers });
    response.end(JSON.stringify({ success: false, message: `It is ${code}.`, code, ...more }));
  };

/** The connection is reset before an answer. */
export const reset: Step = (response) => {
  response.socket?.resetAndDestroy();
};

/** The connection is reset in the middle of a success. */
export const resetInBody: Step = (response) => {
  response.writeHead(200, { ...JSON_TYPE, 'content-length': '1000' });
  response.write('{"success":true,"data":{', () => response.socket?.resetAndDestroy());
};

/** A success whose body does not end. */
export const slowBody: Step = (response) => {
  response.writeHead(200, JSON_TYPE);
  response.write('{"success":true,"data":{');
};

export const silence: Step = () => undefined;
