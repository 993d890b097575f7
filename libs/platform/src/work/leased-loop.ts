import { createLoop, type Loop, stopSoon } from '../async/loop.ts';
import { LEASE_MS, type LeaseStore } from '../mongo/leases.ts';
import { monotonicClockMs } from '../service/clock-and-ids.ts';

/**
 * Takes the lease, or renews it in time. Returns false when another process has it, or when this one stops: the tick must
 * end then. Each step of the work between two calls must end within LEASE_MS - RENEW_EVERY_MS.
 */
export type KeepLease = () => Promise<boolean>;

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
  let isHolder = false;
  let askedAtMs = -Infinity;

  async function keep(): Promise<boolean> {
    const nowMs = monotonicMs();
    if (nowMs - askedAtMs < RENEW_EVERY_MS) return isHolder;
    isHolder = false;
    isHolder = await leases.hold(lease, holder);
    // From before the reply on: the lease ends no later than it counts here.
    askedAtMs = nowMs;
    return isHolder;
  }

  async function release(): Promise<void> {
    const wasHolder = isHolder;
    [isHolder, askedAtMs] = [false, -Infinity];
    if (wasHolder) await leases.release(lease, holder).catch(() => undefined);
  }

  const loop = createLoop({
    ...deps,
    async run(signal) {
      try {
        await run(async () => !signal.aborted && (await keep()), signal);
      } finally {
        if (!keepsLease) await release();
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
    stop: () => stopSoon({ stop: () => loop.stop().then(release) }),
  };
}
