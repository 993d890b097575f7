import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a route answers: JSON, or a status alone. */
export type PeerAnswer = { status?: number; body: unknown } | null;

/** Answers a request below the base address; null for what the API does not have. */
export type Routes = (path: string, query: URLSearchParams) => PeerAnswer;

interface Fault {
  status: number;
  retryAfter?: string;
}

/** The API of another service, as its published document describes it. */
export interface FakePeer {
  url: string;
  /** The only token that it accepts. */
  token: string;
  /** Addresses of the requests with the right token, in order. */
  requests: string[];
  /** The next requests get this status, as many as `times`. */
  answerNext: (fault: Fault, times?: number) => void;
  /** The connections of the next requests are reset in the middle of the answer. */
  resetNext: (times?: number) => void;
  /** Every request to a matching path gets this status from now on. */
  refuse: (path: RegExp, status: number) => void;
  close: () => Promise<void>;
}

/** Starts it on loopback. Every object in its answers has a field that the document does not know. */
export async function startFakePeer(token: string, routes: Routes): Promise<FakePeer> {
  const faults: (Fault | 'reset')[] = [];
  const refused: { path: RegExp; status: number }[] = [];
  const requests: string[] = [];
  const server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${token}` || request.method !== 'GET') {
      answer(response, 401, { code: 'authentication_failed', detail: 'Invalid token' });
      return;
    }
    requests.push(request.url ?? '');
    const fault = faults.shift();
    if (fault === 'reset') reset(response);
    else if (fault) {
      const { status, retryAfter } = fault;
      answer(response, status, {}, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    } else respond(request, response, routes, refused);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const repeat = <T>(value: T, times: number): T[] => Array.from({ length: times }, () => value);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    requests,
    answerNext: (fault, times = 1) => faults.push(...repeat(fault, times)),
    resetNext: (times = 1) => faults.push(...repeat('reset' as const, times)),
    refuse: (path, status) => refused.push({ path, status }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(
  request: IncomingMessage,
  response: ServerResponse,
  routes: Routes,
  refused: readonly { path: RegExp; status: number }[],
): void {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://peer');
  const refusal = refused.find(({ path }) => path.test(pathname));
  if (refusal) {
    answer(response, refusal.status, { detail: 'refused' });
    return;
  }
  const found = routes(pathname, searchParams);
  if (!found) answer(response, 404, { code: 'not_found', detail: 'Entity not found' });
  else answer(response, found.status ?? 200, withUnknownFields(found.body));
}

/** Such as a newer version of the service has them. */
function withUnknownFields(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withUnknownFields);
  if (typeof body !== 'object' || body === null) return body;
  const fields = Object.entries(body).map(([name, value]) => [
    name,
    Array.isArray(value) ? withUnknownFields(value) : (value as unknown),
  ]);
  return { ...Object.fromEntries(fields), addedLater: { nested: [1, null] } } as unknown;
}

function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function reset(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"data":[');
  response.socket?.resetAndDestroy();
}

/** Returns one page of a list, and where the next one begins; null for no further one. */
export function pageOf<T>(
  items: readonly T[],
  start: number,
  size: number,
): { page: T[]; next: number | null } {
  const end = start + size;
  return { page: items.slice(start, end), next: end < items.length ? end : null };
}

/** Returns the object without fields that the service does not show there. */
export function without<T extends object, N extends keyof T>(object: T, ...names: N[]): Omit<T, N> {
  const hidden = new Set<PropertyKey>(names);
  const shown = Object.entries(object).filter(([name]) => !hidden.has(name));
  return Object.fromEntries(shown) as Omit<T, N>;
}
