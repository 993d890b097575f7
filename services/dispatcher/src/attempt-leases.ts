import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';

export interface AttemptLeases {
  /** Work on an attempt that nobody else can have begins; answers what to call when it is over. */
  take: (attemptId: string) => () => void;
  /** The same for one that somebody may have begun: resolves when neither here nor elsewhere anybody works on it. */
  takeAlone: (attemptId: string) => Promise<() => void>;
  /** Announces what has begun, and again what lasts; to be called often. */
  tick: () => void;
}

export interface LeaseDeps {
  running: RunningAttempts;
  monotonicMs: () => number;
  wait: (ms: number) => Promise<unknown>;
}

/** Most attempts end before this, and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 50;
/** By then an attempt that lasts is announced: its age, and the time to the next tick. */
export const ANNOUNCED_WITHIN_MS = 150;
/** What the attempts of a process that died wait for at most; a living one tells again in time. */
const LEASE_MS = 10_000;
const RENEWED_AFTER_MS = 4_000;
const ASK_AGAIN_MS = 250;
const CLAIMS = { maxItems: 2_000, lingerMs: 2, maxInFlight: 2 };

interface Lease {
  /** Who waits to have it alone. */
  waiting: (() => void)[];
}

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, or a
 * record has a copy in another topic, the second one waits for the first instead of sending again.
 * Only who may be the second asks; without Redis nobody is waited for.
 */
export function createAttemptLeases({ running, monotonicMs, wait }: LeaseDeps): AttemptLeases {
  const leases = new Map<string, Lease>();
  /** When to tell next (monotonic), in that order: what is young, and what was announced. */
  const young = new Map<string, number>();
  const announced = new Map<string, number>();
  const ended: string[] = [];
  const claim = createClaim(running);

  function hold(attemptId: string, isAnnounced: boolean): () => void {
    const lease: Lease = { waiting: [] };
    leases.set(attemptId, lease);
    if (isAnnounced) announced.set(attemptId, monotonicMs() + RENEWED_AFTER_MS);
    else young.set(attemptId, monotonicMs() + ANNOUNCED_AFTER_MS);
    return () => {
      for (const goOn of lease.waiting) goOn();
      if (leases.get(attemptId) !== lease) return;
      leases.delete(attemptId);
      young.delete(attemptId);
      if (announced.delete(attemptId)) ended.push(attemptId);
    };
  }

  async function takeAlone(attemptId: string): Promise<() => void> {
    for (;;) {
      const held = leases.get(attemptId);
      if (held) await new Promise<void>((resolve) => held.waiting.push(resolve));
      else if (await claim(attemptId)) {
        if (!leases.has(attemptId)) return hold(attemptId, true);
      } else await wait(ASK_AGAIN_MS);
    }
  }

  return {
    take: (attemptId) => hold(attemptId, false),
    takeAlone,
    tick() {
      // Not what was taken again meanwhile: its announcement stands.
      const over = ended.splice(0).filter((id) => !announced.has(id));
      if (over.length > 0) running.withdraw(over);
      const due = [...takeDue(young, monotonicMs()), ...takeDue(announced, monotonicMs())];
      for (const id of due) announced.set(id, monotonicMs() + RENEWED_AFTER_MS);
      if (due.length > 0) running.announce(due, LEASE_MS);
    },
  };
}

function takeDue(times: Map<string, number>, nowMs: number): string[] {
  const due: string[] = [];
  for (const [id, atMs] of times) {
    if (atMs > nowMs) break;
    due.push(id);
  }
  for (const id of due) times.delete(id);
  return due;
}

/** Claims are asked for together; without Redis everything is granted. */
function createClaim(running: RunningAttempts): (attemptId: string) => Promise<boolean> {
  const claims = createBatcher<string, boolean>({
    ...CLAIMS,
    run: async (ids) => {
      const claimed = await running.claim(ids, LEASE_MS).catch(() => new Set(ids));
      return ids.map((id) => claimed.has(id));
    },
  });
  return claims.add;
}
