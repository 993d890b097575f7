import { randomUUID } from 'node:crypto';
import { operationsOf, type ApiDocument, type Operation } from './api-document.ts';

/** A place of a request where the client writes a value. */
export interface Place {
  operation: Operation;
  where: 'path' | 'query' | 'body';
  name: string;
  /** The example body that the other members come from; null when the operation has none. */
  body: Record<string, unknown> | null;
}

/** Reads the operations of a running gateway from its OpenAPI document. */
export async function readOperations(baseUrl: string): Promise<Operation[]> {
  const response = await fetch(`${baseUrl}/openapi.json`);
  return operationsOf((await response.json()) as ApiDocument);
}

/** Returns every place of every operation, so that no new one is forgotten; of a body its members. */
export function placesOf(operations: readonly Operation[]): Place[] {
  return operations.flatMap((operation) => {
    const [first = null, ...others] = bodiesOf(operation);
    const ofHead = operation.parameters.flatMap(({ in: where, name }) =>
      where === 'header' ? [] : [{ operation, where, name, body: first }],
    );
    const ofBodies = [first, ...others].flatMap((body) =>
      Object.keys(body ?? {}).map((name) => ({ operation, where: 'body' as const, name, body })),
    );
    return [...ofHead, ...ofBodies];
  });
}

export function bodiesOf({ body }: Operation): Record<string, unknown>[] {
  return (body?.examples ?? []) as Record<string, unknown>[];
}

export interface PlacedRequest {
  method: string;
  path: string;
  body: object | undefined;
}

/** What query parameters that a request needs have when nothing else is known for them. */
const USUAL: Readonly<Record<string, string>> = { since: new Date(0).toISOString() };

/** A filter needs a field besides `status` (docs/contract.md C25.8), of which no parameter alone is required. */
const NEEDS_A_FILTER = /\/deliveries\/(cancel|resend)\/estimate$/;

/** Returns the request with `value` in this place, and the `known` values in all other places with their names. */
export function requestWith(
  { operation, where, name, body }: Place,
  value: unknown,
  known: Readonly<Record<string, unknown>>,
): PlacedRequest {
  const at = (place: Place['where'], other: string, usual: unknown): unknown =>
    where === place && name === other ? value : (known[other] ?? usual);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, param: string) =>
    encodeURIComponent(String(at('path', param, '')).toWellFormed()),
  );
  const query = new URLSearchParams(where === 'query' ? { [name]: String(value) } : {});
  for (const { in: kind, name: other, required } of operation.parameters) {
    const usual = known[other] ?? USUAL[other];
    const isLeftOut = kind === 'query' && required && !query.has(other);
    if (isLeftOut && typeof usual === 'string') query.set(other, usual);
  }
  if (NEEDS_A_FILTER.test(operation.path) && !query.has('since')) {
    query.set('since', String(USUAL.since));
  }
  const members = Object.entries(body ?? {});
  return {
    method: operation.method,
    path: query.size > 0 ? `${path}?${query.toString()}` : path,
    body: body
      ? Object.fromEntries(
          // Only one of each kind may have the uid of the example.
          members.map(([key, usual]) => [
            key,
            at('body', key, key === 'uid' ? randomUUID() : usual),
          ]),
        )
      : undefined,
  };
}
