import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';

/**
 * A gateway publishes for so long after it sent a heartbeat that was stored. The sweep takes over after
 * 10 s without one (SILENT_MS there), so that a gateway that was suspended does not publish as well.
 */
export const OWNED_MS = 8_000;

/** Whether the messages of a publisher are this gateway's to publish. */
export interface Ownership {
  /** Runs a heartbeat; when it returns true, the messages are this gateway's for OWNED_MS from its begin on. */
  confirmBy: (heartbeat: () => Promise<boolean>) => Promise<boolean>;
  /** Throws StoreUnavailableError when that time has passed. */
  assert: () => void;
}

export function createOwnership(monotonicMs: () => number): Ownership {
  let confirmedAtMs = -Infinity;
  return {
    async confirmBy(heartbeat) {
      const sentAtMs = monotonicMs();
      const isOwner = await heartbeat();
      if (isOwner) confirmedAtMs = sentAtMs;
      return isOwner;
    },
    assert() {
      if (monotonicMs() - confirmedAtMs > OWNED_MS)
        throw new StoreUnavailableError('no heartbeat of this gateway was stored for 8 s');
    },
  };
}
