import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';

/**
 * A gateway publishes for so long after it sent a heartbeat that was stored. The sweep takes over after
 * 10 s without one (SILENT_MS there), so that a gateway that was suspended does not publish as well.
 */
export const OWNED_MS = 8_000;
/**
 * Heartbeats come every second. While they fail, or after the process was suspended, the time between two does not
 * count.
 */
const MOST_BETWEEN_MS = 2_000;

/** Whether the messages of a publisher are this gateway's to publish. */
export interface Ownership {
  /** Runs a heartbeat; when it returns true, the messages are this gateway's for OWNED_MS from its begin on. */
  confirmBy: (heartbeat: () => Promise<boolean>) => Promise<boolean>;
  /** Throws StoreUnavailableError when that time has passed. */
  assert: () => void;
  /** For how many milliseconds in all a majority has stored the heartbeats. Does not grow while MongoDB is away. */
  confirmedForMs: () => number;
}

export function createOwnership(monotonicMs: () => number): Ownership {
  let confirmedAtMs = -Infinity;
  let confirmedForMs = 0;
  return {
    async confirmBy(heartbeat) {
      const sentAtMs = monotonicMs();
      const isOwner = await heartbeat();
      if (!isOwner) return false;
      confirmedForMs += Math.min(sentAtMs - confirmedAtMs, MOST_BETWEEN_MS);
      confirmedAtMs = sentAtMs;
      return true;
    },
    assert() {
      if (monotonicMs() - confirmedAtMs > OWNED_MS)
        throw new StoreUnavailableError('no heartbeat of this gateway was stored for 8 s');
    },
    confirmedForMs: () => confirmedForMs,
  };
}
