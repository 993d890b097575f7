import type fc from 'fast-check';
import type { Operation } from '../api/api-document.ts';
import type { Draft } from './valid-requests.ts';

/** A request as it is sent. */
export interface WireRequest {
  operation: Operation;
  /** `valid`, or the name of the rule that it breaks. */
  what: string;
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  /** Null for no body at all. */
  body: Buffer | null;
  usesOwnIds: boolean;
}

/** Requests that the document forbids. */
export type Broken = fc.Arbitrary<WireRequest>;

export function toWire(draft: Draft, what: string): WireRequest {
  const { operation, pathIds, query, headers, body, usesOwnIds } = draft;
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(pathIds[name] ?? ''),
  );
  const pairs = query.map((pair) => pair.map(encodeURIComponent).join('='));
  return {
    operation,
    what,
    method: operation.method,
    headers,
    usesOwnIds,
    path: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path,
    body: body && Buffer.from(JSON.stringify(body)),
  };
}

/** Returns the other spelling of a key that the gateway accepts. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
