import { createLoop, type Loop, stopSoon } from '../async/loop.ts';
import { LEASE_MS, type LeaseStore } from '../mongo/leases.ts';
import { monotonicClockMs } from '../service/clock-and-ids.ts';

/**
 * Takes the lease, or renews it in time. Returns false when another process has it, or when this one stops: the work must
 * end then. Each step of the work between two calls must end within LEASE_MS - RENEW_EVERY_MS.
 *
 * Each share of the work has a lease of its own, so that several processes do one share each. A tick has one lease at a
 * time: the lease of a share ends when the tick asks for another one.
 */
export type KeepLease = (share?: number) => Promise<boolean>;

/** The process that does it, among all of its kind. */
export interface LeaseHolder {
  /** Names this process. */
  holder: string;
  leases: LeaseStore;
}

interface LeasedLoopDeps extends LeaseHolder {
  /** Names the loop in the log. */
  name: string;
  lease: string;
  everyMs: number;
  /** One tick. It may do what each process does before it takes the lease. */
  run: (keep: KeepLease, signal: AbortSignal) => Promise<void>;
  /** The first tick comes with the start, not `everyMs` later. */
  startsAtOnce?: true;
  /** The lease ends with the loop, not with each tick: the process goes on with what it knows. */
  keepsLease?: true;
  monotonicMs?: () => number;
  logger: Parameters<typeof createLoop>[0]['logger'];
}

const RENEW_EVERY_MS = LEASE_MS / 4;

/** A loop whose work one process at a time does, under a lease. After a crash another one does it LEASE_MS later. */
export function createLeasedLoop(deps: LeasedLoopDeps): Loop {
  const { leases, holder, lease, run, startsAtOnce, keepsLease } = deps;
  const { monotonicMs = monotonicClockMs } = deps;
  let held = unheld(lease);

  async function keep(name: string): Promise<boolean> {
    if (name !== held.name) await release(name);
    const nowMs = monotonicMs();
    if (nowMs - held.askedAtMs < RENEW_EVERY_MS) return held.isHolder;
    held.isHolder = false;
    held.isHolder = await leases.hold(name, holder);
    // From before the reply on: the lease ends no later than it counts here.
    held.askedAtMs = nowMs;
    return held.isHolder;
  }

  async function release(next: string): Promise<void> {
    const before = held;
    held = unheld(next);
    if (before.isHolder) await leases.release(before.name, holder).catch(() => undefined);
  }

  const loop = createLoop({
    ...deps,
    async run(signal) {
      try {
        await run(async (share) => !signal.aborted && (await keep(nameOf(lease, share))), signal);
      } finally {
        if (!keepsLease) await release(lease);
      }
    },
  });
  return {
    start() {
      loop.start();
      if (startsAtOnce) void loop.tick();
    },
    tick: loop.tick,
    // The lease ends when the tick has ended, or by itself.
    stop: () => stopSoon({ stop: () => loop.stop().then(() => release(lease)) }),
  };
}

/** The lease that was asked for last. */
interface Held {
  name: string;
  isHolder: boolean;
  /** By the monotonic clock. */
  askedAtMs: number;
}

const unheld = (name: string): Held => ({ name, isHolder: false, askedAtMs: -Infinity });

const nameOf = (lease: string, share: number | undefined): string =>
  share === undefined ? lease : `${lease}/${share}`;
