import type { Header } from '@posthorn/domain/webhook.ts';

/** How much of a response body is read, and how much of that is kept (docs/contract.md C9.9). */
const MAX_READ_BYTES = 65_536;
const MAX_KEPT_BYTES = 4_096;
const MAX_HEADER_CHARS = 256;

/** Headers that help to find a fault and cannot carry a session or a secret. */
// prettier-ignore
const SAFE_HEADERS = new Set([
  'content-type', 'content-length', 'date', 'server', 'retry-after', 'location', 'via',
  'x-request-id', 'x-correlation-id', 'allow', 'content-encoding', 'cf-ray',
]);

export interface ResponseCapture {
  /** Returns false when nothing more should be read. */
  add: (chunk: Buffer) => boolean;
  /** Returns the kept beginning of the body as text; bytes that are not UTF-8 become U+FFFD. */
  text: () => string;
}

export function createResponseCapture(keptBytes = MAX_KEPT_BYTES): ResponseCapture {
  const kept: Buffer[] = [];
  let readBytes = 0;
  return {
    add(chunk) {
      // Copied, because the chunk is a slice of the socket's buffer and would keep all of it alive.
      if (readBytes < keptBytes) {
        kept.push(Buffer.from(chunk.subarray(0, keptBytes - readBytes)));
      }
      readBytes += chunk.length;
      return readBytes <= MAX_READ_BYTES;
    },
    text: () => Buffer.concat(kept).toString('utf8'),
  };
}

export function safeHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Header[] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && SAFE_HEADERS.has(name.toLowerCase()))
    .map(([key, value]) => ({ key, value: String(value).slice(0, MAX_HEADER_CHARS) }));
}
