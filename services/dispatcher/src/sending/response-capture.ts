import { constants, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import type { Header } from '@posthorn/domain/webhook.ts';
import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';

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
  /**
   * Returns the kept beginning of the body as text; bytes that are not UTF-8 become U+FFFD. Null when the body is
   * encoded (`content-encoding`) in a way that is not known here: its bytes are no text.
   */
  text: (encoding?: string) => string | null;
}

/** A body in absurdly small chunks is read no further, as a long one: each chunk costs the time of all endpoints. */
export function createResponseCapture(keptBytes = MAX_KEPT_BYTES): ResponseCapture {
  const body = createByteCollector({ maxBytes: keptBytes });
  return {
    add(chunk) {
      body.add(chunk);
      return body.receivedBytes() <= MAX_READ_BYTES && !body.isShredded();
    },
    text: (encoding) =>
      decoded(body.bytes(), encoding)?.subarray(0, keptBytes).toString('utf8') ?? null,
  };
}

/** The largest decoded body. To inflate it takes less than 0.5 ms. */
const MAX_DECODED_BYTES = 65_536;

/**
 * No encoding is asked for, but some servers compress all the same. Brotli and others, whose decoders may need 16 MiB,
 * are not decoded.
 */
function decoded(bytes: Buffer, encoding = 'identity'): Buffer | null {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return bytes;
    case 'gzip':
    case 'x-gzip':
      return beginningOf(bytes, gunzipSync);
    case 'deflate':
      return beginningOf(bytes, hasZlibHeader(bytes) ? inflateSync : inflateRawSync);
    default:
      return null;
  }
}

/** Some servers send `deflate` without the zlib header (RFC 9110, section 8.4.1.2), whose method is 8. */
function hasZlibHeader([first = 8]: Buffer): boolean {
  return first % 16 === 8;
}

/**
 * A body that was cut off is decoded as far as it goes. zlib throws all away when the decoded body is too large, so a
 * quarter of the bytes is tried then: 4 KiB become at most 4.2 MB, and 64 bytes at most 66 kB, so this takes 6 trials.
 */
function beginningOf(bytes: Buffer, inflate: typeof gunzipSync): Buffer | null {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: MAX_DECODED_BYTES };
  for (let size = bytes.length; ; size = Math.floor(size / 4)) {
    try {
      return inflate(bytes.subarray(0, size), options);
    } catch (error) {
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (!isTooLarge || size === 0) return null;
    }
  }
}

export function safeHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Header[] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && SAFE_HEADERS.has(name.toLowerCase()))
    .map(([key, value]) => ({ key, value: String(value).slice(0, MAX_HEADER_CHARS) }));
}
