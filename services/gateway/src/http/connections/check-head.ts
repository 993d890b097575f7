import type { IncomingMessage } from 'node:http';

/** What is wrong with the head of a request; `unknown_coding` is a transfer coding other than `chunked`. */
export type HeadFault = 'malformed' | 'unknown_coding';

/**
 * Checks what Node's parser accepts and RFC 9112 refuses. Afterwards `Host` is the authority of the target and `url`
 * its path and query, also for a target in absolute form (section 3.2.2), so nothing reads an unchecked host. Returns
 * null when the head is good.
 */
export function checkHead(request: IncomingMessage): HeadFault | null {
  return faultOfCoding(request) ?? (hasOneHost(request) && useTarget(request) ? null : 'malformed');
}

/**
 * Section 6.1. A proxy in front that ignores a coding, or knows one that is ignored here, would find another end of
 * the request than this gateway, and the rest would be somebody else's next request.
 */
function faultOfCoding({ httpVersion, headers }: IncomingMessage): HeadFault | null {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return null;
  if (httpVersion === '1.0') return 'malformed';
  return coding.trim().toLowerCase() === 'chunked' ? null : 'unknown_coding';
}

/** Section 3.2. HTTP/1.0 may leave it out. */
function hasOneHost({ httpVersion, headers, rawHeaders }: IncomingMessage): boolean {
  if (headers.host === undefined) return httpVersion === '1.0';
  return countOfHosts(rawHeaders) === 1 && isAuthority(headers.host);
}

/** Node keeps the first of several. `rawHeaders` has names and values in turn. */
function countOfHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** RFC 3986, section 3.2, without a user. */
const HOST_AND_PORT = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d*)?$/i;

/** An authority must also fit into an http URL: `a%2fb` and `a:99999` are none. */
function isAuthority(text: string): boolean {
  return HOST_AND_PORT.test(text) && URL.canParse(`http://${text}`);
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

function useTarget(request: IncomingMessage): boolean {
  const { url = '', method } = request;
  if (url.startsWith('/')) return true;
  if (url === '*') return method === 'OPTIONS';
  const [, authority = '', rest = ''] = ABSOLUTE.exec(url) ?? [];
  if (!isAuthority(authority)) return false;
  request.headers.host = authority;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  return true;
}
