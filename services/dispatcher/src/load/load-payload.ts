import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';

/** The bytes of a message's payload; null when the message is not stored any more. */
export type LoadPayload = (messageId: string) => Promise<Buffer | null>;

/** Of the entry itself: without it a million tiny payloads took 700 MB. */
const ENTRY_BYTES = 512;

/** The records of a fan-out follow each other within seconds, and so do retries of a short schedule. */
const REMEMBER_MS = 60_000;

export interface PayloadLoader {
  load: LoadPayload;
  /** What is remembered, in bytes. */
  usedBytes: () => number;
}

/** Remembers up to `cacheBytes`: payloads of large messages and of retries that come in bursts. */
export function createPayloadLoader(
  messages: Pick<MessageStore, 'payloadsOf'>,
  cacheBytes: number,
): PayloadLoader {
  const batch = createBatcher<string, string | undefined>({
    // Of 256 KiB at most: two batches on their way take 25 MB.
    maxItems: 50,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const found = await keepTrying(() => messages.payloadsOf([...new Set(ids)]));
      return ids.map((id) => found.get(id));
    },
  });
  const cache = createCoalescingCache<Buffer>({
    maxSize: cacheBytes,
    sizeOf: (payload) => payload.length + ENTRY_BYTES,
    ttlMs: REMEMBER_MS,
  });
  return {
    usedBytes: cache.usedSize,
    load: (id) =>
      cache.get(id, async () => {
        const payload = await batch.add(id);
        return payload === undefined ? null : ownBytesOf(payload);
      }),
  };
}

/** `Buffer.from` would cut it from a slab of 64 KiB and keep all of that: 22 MB of payloads held 117 MB. */
function ownBytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
