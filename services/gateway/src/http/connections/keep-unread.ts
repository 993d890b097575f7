import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import type { IncomingMessage } from 'node:http';

/** Node reads no more of a body that nobody reads; one read of 64 KiB may come on top. */
const MAX_UNREAD_BYTES = 16_384;

/**
 * Keeps what arrives of a body in one buffer until somebody reads it: that is when the API key was found. Node's own
 * buffer counts bytes and not chunks: 64 KiB in chunks of one byte are 35 MB of resident memory, for a request without a
 * valid key too.
 */
export function keepUnreadTogether(request: IncomingMessage): void {
  const push = request.push.bind(request);
  const read = request._read.bind(request);
  const kept = createByteCollector({ maxBytes: Infinity });
  let isKept = true;
  const release = (): void => {
    if (!isKept) return;
    isKept = false;
    Object.assign(request, { push, _read: read });
    if (kept.receivedBytes() > 0) push(kept.bytes());
  };
  request.push = (chunk: Buffer | null) => {
    if (chunk === null) {
      release();
      return push(null);
    }
    kept.add(chunk);
    return kept.receivedBytes() < MAX_UNREAD_BYTES;
  };
  request._read = (size) => {
    release();
    read(size);
  };
}
