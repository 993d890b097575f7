import type { LoadPayload } from './load-payload.ts';

/** The memory of one payload, from before it is loaded until its attempt is over. */
export interface ReservedPayload {
  /** Loads the payload, which counts with its size from then on. Null when the message is not stored any more. */
  load: (messageId: string) => Promise<Buffer | null>;
  release: () => void;
}

export interface PayloadMemory {
  /** True when the company may reserve. */
  hasRoom: (companyId: string) => boolean;
  /** To be called when there is room, and an attempt begins: what waits must hold nothing. */
  reserve: (companyId: string) => ReservedPayload;
  /** Calls `act` each time that memory is freed. */
  onFreed: (act: () => void) => void;
  usedBytes: () => number;
}

/** What a payload counts for until it is loaded and its size is known. */
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
          if (!isReleased) setTo(payload?.length ?? 0);
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
