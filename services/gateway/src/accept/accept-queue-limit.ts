import { createShares } from '@posthorn/platform/memory/shares.ts';

/** Bounds the requests that wait for the store. */
export interface AcceptQueueLimit {
  /**
   * Returns the function that releases the reservation. Returns null, and reserves nothing, when the
   * company already holds its share.
   */
  tryReserve: (companyId: string, bytes: number) => (() => void) | null;
  /** False when such a reservation would be refused now. */
  hasRoom: (companyId: string, bytes: number) => boolean;
  /** Bytes of all reservations. */
  usedBytes: () => number;
}

export interface AcceptQueueBounds {
  requests: number;
  bytes: number;
}

/** Companies share both the number of requests and the bytes (see createShares). */
export function createAcceptQueueLimit(bounds: AcceptQueueBounds): AcceptQueueLimit {
  const requests = createShares(bounds.requests);
  const memory = createShares(bounds.bytes);
  const hasRoom = (companyId: string, bytes: number): boolean =>
    requests.hasRoom(companyId, 1) && memory.hasRoom(companyId, bytes);
  return {
    hasRoom,
    tryReserve(companyId, bytes) {
      if (!hasRoom(companyId, bytes)) return null;
      requests.add(companyId, 1);
      memory.add(companyId, bytes);
      return () => {
        requests.remove(companyId, 1);
        memory.remove(companyId, bytes);
      };
    },
    usedBytes: memory.used,
  };
}
