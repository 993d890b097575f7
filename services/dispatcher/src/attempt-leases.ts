import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';

export interface AttemptLeases {
  /** Work on the attempt begins; answers what to call once when it is over. */
  take: (attemptId: string) => () => void;
  /** The same, after whoever works on it in this process has ended. */
  takeAlone: (attemptId: string) => Promise<() => void>;
  /** Announces what has begun; to be called often. */
  tick: () => void;
}

export interface LeaseDeps {
  running: Pick<RunningAttempts, 'announce' | 'withdraw'>;
  monotonicMs: () => number;
  /** The longest that one attempt takes. */
  timeoutMs: number;
}

/** Most attempts end before this, and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 50;
/** For recording it, after its time is over. */
const RECORDING_MS = 5_000;

interface Lease {
  takenMs: number;
  isAnnounced: boolean;
  /** Who waits to have it alone. */
  waiting: (() => void)[];
}

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, the
 * new one waits for them instead of sending a second time. A lease is no claim: nobody asks for it
 * before a first attempt, and it ends by itself, so an owner that died costs at most its time.
 */
export function createAttemptLeases({ running, monotonicMs, timeoutMs }: LeaseDeps): AttemptLeases {
  /** In the order in which they were taken. */
  const leases = new Map<string, Lease>();
  const young = new Set<string>();
  let ended: string[] = [];

  function take(attemptId: string): () => void {
    const lease: Lease = { takenMs: monotonicMs(), isAnnounced: false, waiting: [] };
    leases.set(attemptId, lease);
    young.add(attemptId);
    return () => {
      if (lease.isAnnounced) ended.push(attemptId);
      if (leases.get(attemptId) === lease) leases.delete(attemptId);
      for (const goOn of lease.waiting) goOn();
    };
  }

  async function takeAlone(attemptId: string): Promise<() => void> {
    for (let held = leases.get(attemptId); held; held = leases.get(attemptId)) {
      const { waiting } = held;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    return take(attemptId);
  }

  return {
    take,
    takeAlone,
    tick() {
      if (ended.length > 0) running.withdraw(ended);
      ended = [];
      const grown = growUp(leases, young, monotonicMs());
      if (grown.length > 0) running.announce(grown, timeoutMs + RECORDING_MS);
    },
  };
}

/** Those that have lasted long enough to be announced, taken out of the young ones. */
function growUp(leases: Map<string, Lease>, young: Set<string>, monotonicMs: number): string[] {
  const grown: string[] = [];
  for (const id of young) {
    const lease = leases.get(id);
    if (lease && monotonicMs - lease.takenMs < ANNOUNCED_AFTER_MS) break;
    young.delete(id);
    if (!lease) continue;
    lease.isAnnounced = true;
    grown.push(id);
  }
  return grown;
}
