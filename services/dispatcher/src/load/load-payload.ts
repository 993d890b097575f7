import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { MessageStore, StoredPayload } from '@posthorn/platform/mongo/messages/messages.ts';

/** The bytes of a message's payload; null when the company has no such message, or no longer. */
export type LoadPayload = (companyId: string, messageId: string) => Promise<Buffer | null>;

/** Size of an entry without its payload. When it was not counted, a million tiny payloads took 700 MB. */
const ENTRY_BYTES = 512;

/** The records of a fan-out follow each other within seconds, and so do retries of a short schedule. */
const REMEMBER_MS = 60_000;

interface CachedPayload {
  companyId: string;
  bytes: Buffer;
}

export interface PayloadLoader {
  load: LoadPayload;
  /** Bytes that the cache holds. */
  usedBytes: () => number;
}

/** Caches up to `cacheBytes`: the payloads of large messages, and of retries that come in bursts. */
export function createPayloadLoader(
  messages: Pick<MessageStore, 'payloadsOf'>,
  cacheBytes: number,
  keepTrying: KeepTrying,
): PayloadLoader {
  const batch = createBatcher<string, StoredPayload | undefined>({
    // A payload has 256 KiB at most, so that two batches in flight take 25 MB.
    maxItems: 50,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const found = await keepTrying('load payloads', () => messages.payloadsOf([...new Set(ids)]));
      return ids.map((id) => found.get(id));
    },
  });
  const cache = createCoalescingCache<CachedPayload>({
    maxSize: cacheBytes,
    sizeOf: ({ bytes }) => bytes.length + ENTRY_BYTES,
    ttlMs: REMEMBER_MS,
  });
  return {
    usedBytes: cache.usedSize,
    async load(companyId, id) {
      const cached = await cache.get(id, async () => {
        const found = await batch.add(id);
        return found ? { companyId: found.companyId, bytes: unpooledBytesOf(found.payload) } : null;
      });
      return cached?.companyId === companyId ? cached.bytes : null;
    },
  };
}

/** `Buffer.from` cuts small buffers from shared slabs of 64 KiB: 22 MB of payloads kept 117 MB alive. */
function unpooledBytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
