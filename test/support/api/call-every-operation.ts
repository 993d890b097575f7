import { bodiesOf, readOperations, requestWith, type PlacedRequest } from './request-places.ts';
import type { ApiAnswer, ApiClient } from './api-client.ts';
import type { Operation } from './api-document.ts';

/** What became of one request. */
export interface TimedAnswer {
  request: string;
  status: number;
  code: string | undefined;
  retryAfter: string | null;
  tookMs: number;
}

/** Returns a valid request to each operation, with the `known` ids and values. */
export async function everyRequest(
  baseUrl: string,
  known: Readonly<Record<string, unknown>>,
): Promise<PlacedRequest[]> {
  const operations = await readOperations(baseUrl);
  return operations.map((operation) => requestTo(operation, known));
}

function requestTo(operation: Operation, known: Readonly<Record<string, unknown>>): PlacedRequest {
  const [body = null] = bodiesOf(operation);
  const needed = operation.parameters.find(
    ({ in: where, required }) => where === 'query' && required,
  );
  const name = needed?.name ?? '';
  const where = needed ? ('query' as const) : ('path' as const);
  return requestWith({ operation, where, name, body }, known[name], known);
}

/** Sends all of them at once. */
export function answersTo(
  api: ApiClient,
  requests: readonly PlacedRequest[],
): Promise<TimedAnswer[]> {
  return Promise.all(
    requests.map(({ method, path, body }) =>
      timed(`${method} ${path}`, () => api.request(method, path, body)),
    ),
  );
}

/** Sends one request and measures how long it takes. */
export async function timed(request: string, send: () => Promise<ApiAnswer>): Promise<TimedAnswer> {
  const startedMs = performance.now();
  const { status, headers, body } = await send();
  const tookMs = performance.now() - startedMs;
  return { request, status, code: body.code, retryAfter: headers.get('retry-after'), tookMs };
}
