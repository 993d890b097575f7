import { useSyncExternalStore } from 'react';
import { GATEWAY_URL } from './addresses.ts';

/** A call of the API that the present page has made. */
export interface RecordedCall {
  method: string;
  /** With the query, from `/api/v1`. */
  path: string;
}

const MOST_CALLS = 30;
let calls: readonly RecordedCall[] = [];
let page = '';
const listeners = new Set<() => void>();

/** Remembers a call for the panel "API calls of this page". The calls of the page before are forgotten. */
export function recordCall({ method, url }: Request): void {
  const path = url.slice(GATEWAY_URL.length);
  const isSamePage = page === location.pathname;
  page = location.pathname;
  const others = isSamePage
    ? calls.filter((each) => each.path !== path || each.method !== method)
    : [];
  calls = [...others, { method, path }].slice(-MOST_CALLS);
  for (const listener of listeners) listener();
}

/** The calls of the present page, each once, the newest last. */
export function useRecordedCalls(): readonly RecordedCall[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => calls,
  );
}

/** Returns a command for a shell that makes the same call with an API key. */
export function curlOf({ method, path }: RecordedCall, body?: string): string {
  return [
    method === 'GET' ? 'curl' : `curl -X ${method}`,
    '-H "Authorization: Bearer $POSTHORN_API_KEY"',
    ...(body === undefined ? [] : [`-H 'content-type: application/json' -d ${quoted(body)}`]),
    quoted(`${GATEWAY_URL}${path}`),
  ].join(' \\\n  ');
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
