import { createLoop, type Loop, stopSoon } from '@posthorn/platform/async/loop.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { CountJournal } from '@posthorn/platform/mongo/messages/count-journal.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

interface AddUpDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  leases: LeaseStore;
  journal: CountJournal;
  logger: Pick<Logger, 'warn'>;
  monotonicMs: () => number;
}

const LEASE = 'add up counts';
const EVERY_MS = 2_500;
const MIN_WAIT_MS = 5_000;
const MAX_WAIT_MS = 3_600_000;
/** See waitAfter. */
const MS_PER_ROOT = 1_000;

/**
 * Adds up what gateways and dispatchers counted (docs/decisions/0035-roll-ups.md). One process at a time does, which
 * keeps the lease while there is something to add up. Without the lease it would be as correct, but cost more.
 */
export function createAddUpCounts(deps: AddUpDeps): Loop {
  const { holder, leases, journal, logger, monotonicMs } = deps;
  let nextMs = -Infinity;
  const loop = createLoop({
    name: 'adding up of counts',
    everyMs: EVERY_MS,
    async run(signal) {
      if ((await journal.isEmpty()) || !(await leases.hold(LEASE, holder))) return;
      const startedMs = monotonicMs();
      if (startedMs < nextMs) return;
      const updates = await addUpAll(deps, signal);
      nextMs = startedMs + waitAfter(updates);
    },
    logger,
  });
  return {
    start: loop.start,
    tick: loop.tick,
    async stop() {
      await stopSoon(loop);
      await leases.release(LEASE, holder).catch(() => undefined);
    },
  };
}

/**
 * Every webhook, app and company in use costs an update each time, so rarely is cheap, and often is fresh. The square
 * root shares the cost between both: 40 of them are added up every 6 s (6 updates/s), 4,000 every 63 s (63/s), and
 * 6,000,000 every 41 minutes (2,450/s).
 */
function waitAfter(updates: number): number {
  return Math.min(Math.max(Math.sqrt(updates) * MS_PER_ROOT, MIN_WAIT_MS), MAX_WAIT_MS);
}

/** Ends early when another process has the lease, or when this one stops. Returns how many documents it updated. */
async function addUpAll(
  { holder, leases, journal, monotonicMs }: AddUpDeps,
  signal: AbortSignal,
): Promise<number> {
  let updates = 0;
  let renewedMs = monotonicMs();
  for (let bucket: number | null = 0; bucket !== null && !signal.aborted;) {
    const startedMs = monotonicMs();
    if (startedMs - renewedMs >= EVERY_MS) {
      if (!(await leases.hold(LEASE, holder))) break;
      renewedMs = startedMs;
    }
    const added = await journal.addUp(bucket);
    updates += added.updates;
    bucket = added.next;
    // At most half of the time MongoDB works for this.
    await pause(monotonicMs() - startedMs, signal);
  }
  return updates;
}
