import { createShares } from '@posthorn/platform/memory/shares.ts';

export interface WaitingRoom {
  /** Null when the company has no room; otherwise the function that gives its place back. */
  enter: (companyId: string, bytes: number) => (() => void) | null;
  usedBytes: () => number;
}

export interface WaitingBounds {
  places: number;
  bytes: number;
}

/** Places and bytes for requests that wait, each shared by the companies (see createShares). */
export function createWaitingRoom(bounds: WaitingBounds): WaitingRoom {
  const places = createShares(bounds.places);
  const weights = createShares(bounds.bytes);
  return {
    enter(companyId, bytes) {
      if (!places.hasRoom(companyId, 1) || !weights.hasRoom(companyId, bytes)) return null;
      places.add(companyId, 1);
      weights.add(companyId, bytes);
      return () => {
        places.remove(companyId, 1);
        weights.remove(companyId, bytes);
      };
    },
    usedBytes: weights.used,
  };
}
