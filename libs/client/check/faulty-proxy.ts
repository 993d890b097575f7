import {
  Agent,
  createServer,
  type IncomingMessage,
  request as startRequest,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';

/** The fate of a request on its way. */
const FAULTS = [
  /** Reaches the API 100 ms later. */
  'delayed',
  /** Refused before it reaches the API, with `Retry-After`. */
  'rate limited',
  'unavailable',
  /** Carried out, and its answer is replaced. */
  'unavailable afterwards',
  /** The connection is reset before anything reaches the API. */
  'reset',
  /** Carried out, and the connection is reset in the middle of the answer. */
  'reset in the answer',
  /** Carried out, and the answer does not come, or its body does not end. */
  'no answer',
  'slow body',
] as const;

export type Fault = (typeof FAULTS)[number];

export interface FaultyProxy {
  baseUrl: string;
  /** How often each fault happened. */
  counts: Readonly<Record<Fault, number>>;
  close: () => Promise<void>;
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

const DELAY_MS = 100;

/** Starts a proxy on loopback before an API. `random` returns numbers from 0 to 1; this share of requests gets a fault. */
export async function startFaultyProxy(
  target: string,
  { share, random }: { share: number; random: () => number },
): Promise<FaultyProxy> {
  const counts = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    const fault = random() < share ? FAULTS[Math.floor(random() * FAULTS.length)] : undefined;
    if (fault) counts[fault] += 1;
    const forward = (): Promise<Answer> => forwardTo(target, agent, request);
    // The client resets connections too; its request then has no answer.
    pass(fault, response, forward).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    counts,
    close: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

async function pass(
  fault: Fault | undefined,
  response: ServerResponse,
  forward: () => Promise<Answer>,
): Promise<void> {
  switch (fault) {
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'rate limited':
      refuse(response, 429, 'rate_limited');
      return;
    case 'unavailable':
      refuse(response, 503, 'unavailable');
      return;
    case 'delayed':
      await wait(DELAY_MS);
      break;
    case 'unavailable afterwards':
    case 'reset in the answer':
    case 'no answer':
    case 'slow body':
    case undefined:
  }
  const { status, headers, body } = await forward();
  switch (fault) {
    case 'unavailable afterwards':
      refuse(response, 503, 'unavailable');
      return;
    case 'no answer':
      return;
    case 'reset in the answer':
      response.writeHead(status, headers);
      response.write(body.subarray(0, body.length / 2), () => response.socket?.resetAndDestroy());
      return;
    case 'slow body':
      response.writeHead(status, headers);
      response.write(body.subarray(0, body.length / 2));
      return;
    case 'delayed':
    case undefined:
      response.writeHead(status, headers).end(body);
  }
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const headers = { 'content-type': 'application/json', 'retry-after': '0' };
  response.writeHead(status, headers);
  response.end(JSON.stringify({ success: false, message: 'A fault.', code, requestId: '' }));
}

async function forwardTo(target: string, agent: Agent, from: IncomingMessage): Promise<Answer> {
  const body = await buffer(from);
  const { method, url = '' } = from;
  const headers = without(from.headers, ['host', 'connection']);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = startRequest(`${target}${url}`, { method, headers, agent }, resolve);
    request.on('error', reject).end(body);
  });
  const read = await buffer(answer);
  const kept = without(answer.headers, ['connection', 'transfer-encoding']);
  return {
    status: answer.statusCode ?? 502,
    headers: { ...kept, 'content-length': String(read.length) },
    body: read,
  };
}

/** Headers that concern one connection only are not passed on. */
function without(headers: Answer['headers'], names: readonly string[]): Answer['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}
