import { createBatcher } from '@posthorn/platform/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/coalescing-cache.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages.ts';

/** The bytes of a message's payload; null when the message is not stored any more. */
export type LoadPayload = (messageId: string) => Promise<Buffer | null>;

/** Holds the payloads of large messages and of retries that come in bursts. */
const MAX_REMEMBERED_BYTES = 67_108_864;
/** Of the entry itself: without it a million tiny payloads took 700 MB. */
const ENTRY_BYTES = 512;

export function createLoadPayload(messages: Pick<MessageStore, 'payloadsOf'>): LoadPayload {
  const batch = createBatcher<string, string | undefined>({
    maxItems: 100,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const found = await keepTrying(() => messages.payloadsOf([...new Set(ids)]));
      return ids.map((id) => found.get(id));
    },
  });
  const cache = createCoalescingCache<Buffer>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeOf: (payload) => payload.length + ENTRY_BYTES,
  });
  return (id) =>
    cache.get(id, async () => {
      const payload = await batch.add(id);
      return payload === undefined ? null : Buffer.from(payload);
    });
}
