import { createBatcher } from '@posthorn/platform/batcher.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages.ts';
import { LRUCache } from 'lru-cache';

/** The bytes of a message's payload; null when the message is not stored any more. */
export type LoadPayload = (messageId: string) => Promise<Buffer | null>;

/** Holds the payloads of large messages and of retries that come in bursts. */
const MAX_REMEMBERED_BYTES = 67_108_864;

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
  const cache = new LRUCache<string, Buffer>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: (payload) => payload.length + 1,
    fetchMethod: async (id) => {
      const payload = await batch.add(id);
      return payload === undefined ? undefined : Buffer.from(payload);
    },
  });
  return async (id) => (await cache.fetch(id)) ?? null;
}
