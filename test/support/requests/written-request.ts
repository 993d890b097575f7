import type { Operation } from '../api/api-document.ts';
import type { Draft } from './valid-requests.ts';

/** A request as it goes over the wire. */
export interface WrittenRequest {
  operation: Operation;
  /** `valid`, or what is wrong with it. */
  what: string;
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  /** Null for no body at all. */
  body: Buffer | null;
  isAtHome: boolean;
}

export function write(draft: Draft, what: string): WrittenRequest {
  const { operation, pathIds, query, headers, body, isAtHome } = draft;
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(pathIds[name] ?? ''),
  );
  const pairs = query.map((pair) => pair.map(encodeURIComponent).join('='));
  return {
    operation,
    what,
    method: operation.method,
    headers,
    isAtHome,
    path: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path,
    body: body && Buffer.from(JSON.stringify(body)),
  };
}

/** The other spelling of a key that the gateway takes. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
