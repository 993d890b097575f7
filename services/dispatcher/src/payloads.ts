import { headersOfMessage, type RecordHeaders } from '@posthorn/domain/records/record-headers.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import { CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { MessageStore, StoredPayload } from '@posthorn/platform/mongo/messages/messages.ts';

/** The part of the stored message that an attempt needs. */
interface LoadedPayload {
  bytes: Buffer;
  /** Headers of each record of the message: those that are made from the database lack them. */
  headers: RecordHeaders;
}

/** `erased` when the payload was erased; null when the company has no such message, or no longer. */
type FoundPayload = LoadedPayload | 'erased' | null;
type LoadPayload = (companyId: string, messageId: string) => Promise<FoundPayload>;

/** Size of an entry without its payload. When it was not counted, a million tiny payloads took 700 MB. */
const ENTRY_BYTES = 768;

/** The records of a fan-out follow each other within seconds, and so do retries of a short schedule. */
const REMEMBER_MS = 60_000;

interface CachedPayload {
  companyId: string;
  payload: LoadedPayload | 'erased';
}

export interface PayloadLoader {
  load: LoadPayload;
  /** Drops the payload of a message, which is erased now. */
  forget: (messageId: string) => void;
  /** Bytes that the cache holds. */
  usedBytes: () => number;
}

/** Caches up to `cacheBytes`: the payloads of large messages, and of retries that come in bursts. */
export function createPayloadLoader(
  messages: Pick<MessageStore, 'payloadsOf'>,
  cacheBytes: number,
  keepTrying: KeepTrying,
): PayloadLoader {
  const readTogether = createReadTogether(
    (ids) => keepTrying('load payloads', () => messages.payloadsOf([...ids])),
    // A payload has 256 KiB at most, so that two reads under way take 25 MB.
    { maxItems: 50 },
  );
  const cache = new CoalescingCache<CachedPayload>({
    maxSize: cacheBytes,
    sizeOf: ({ payload }) => lengthOf(payload) + ENTRY_BYTES,
    ttlMs: REMEMBER_MS,
  });
  return {
    usedBytes: () => cache.usedSize(),
    forget: (id) => {
      cache.forget(id);
    },
    async load(companyId, id) {
      const cached = await cache.get(id, async () => {
        const found = await readTogether(id);
        if (!found) return null;
        return { companyId: found.companyId, payload: found.isErased ? 'erased' : loaded(found) };
      });
      return cached?.companyId === companyId ? cached.payload : null;
    },
  };
}

const lengthOf = (found: FoundPayload): number =>
  found === null || found === 'erased' ? 0 : found.bytes.length;

function loaded({ payload, ...message }: StoredPayload): LoadedPayload {
  return { bytes: unpooledBytesOf(payload), headers: headersOfMessage(message) };
}

/** `Buffer.from` cuts small buffers from shared slabs of 64 KiB: 22 MB of payloads kept 117 MB alive. */
function unpooledBytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** The memory of one payload, from before it is loaded until its attempt is over. */
export interface ReservedPayload {
  /** Loads the payload, which counts with its size from then on. Null when the message is not stored any more. */
  load: (messageId: string) => Promise<FoundPayload>;
  release: () => void;
}

export interface PayloadMemory {
  /** True when the company may reserve. */
  hasRoom: (companyId: string) => boolean;
  /** To be called when there is room, and an attempt begins: waiting attempts reserve nothing. */
  reserve: (companyId: string) => ReservedPayload;
  /** Calls `act` each time that memory is freed. */
  onFreed: (act: () => void) => void;
  usedBytes: () => number;
}

/** The size for which a payload counts until it is loaded. */
const RESERVED_BYTES = 65_536;

/**
 * Bounds the payloads of attempts under way: 2,000 of 256 KiB would take 512 MB. A company may use half
 * of the budget at most, so that large payloads to endpoints that hang do not stop the others. A payload may exceed
 * the budget, whatever its size: none has to wait for more than one reservation.
 */
export function createPayloadMemory(load: LoadPayload, budgetBytes: number): PayloadMemory {
  let usedBytes = 0;
  const usedByCompany = new Map<string, number>();
  let onFreed = (): void => undefined;

  function count(companyId: string, bytes: number): void {
    usedBytes += bytes;
    const ofCompany = (usedByCompany.get(companyId) ?? 0) + bytes;
    if (ofCompany === 0) usedByCompany.delete(companyId);
    else usedByCompany.set(companyId, ofCompany);
    if (bytes < 0) onFreed();
  }

  return {
    usedBytes: () => usedBytes,
    hasRoom: (companyId) =>
      usedBytes < budgetBytes && (usedByCompany.get(companyId) ?? 0) < budgetBytes / 2,
    onFreed(act) {
      onFreed = act;
    },
    reserve(companyId) {
      let heldBytes = 0;
      let isReleased = false;
      const setTo = (bytes: number): void => {
        const change = bytes - heldBytes;
        heldBytes = bytes;
        count(companyId, change);
      };
      setTo(RESERVED_BYTES);
      return {
        async load(messageId) {
          const payload = await load(companyId, messageId);
          if (!isReleased) setTo(lengthOf(payload));
          return payload;
        },
        release() {
          if (isReleased) return;
          isReleased = true;
          setTo(0);
        },
      };
    },
  };
}
