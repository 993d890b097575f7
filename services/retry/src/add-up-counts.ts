import type { Loop } from '@posthorn/platform/async/loop.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import type { CountJournal } from '@posthorn/platform/mongo/messages/count-journal.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';

interface AddUpDeps extends LeaseHolder {
  journal: CountJournal;
  logger: Pick<Logger, 'warn'>;
  monotonicMs: () => number;
}

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
  const { journal, monotonicMs } = deps;
  let nextMs = -Infinity;
  return createLeasedLoop({
    ...deps,
    name: 'adding up of counts',
    lease: 'add up counts',
    keepsLease: true,
    everyMs: EVERY_MS,
    async run(keep, signal) {
      if ((await journal.isEmpty()) || !(await keep())) return;
      const startedMs = monotonicMs();
      if (startedMs < nextMs) return;
      const updates = await addUpAll(deps, keep, signal);
      nextMs = startedMs + waitAfter(updates);
    },
  });
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
  { journal, monotonicMs }: AddUpDeps,
  keep: KeepLease,
  signal: AbortSignal,
): Promise<number> {
  let updates = 0;
  for (let bucket: number | null = 0; bucket !== null && (await keep());) {
    const startedMs = monotonicMs();
    const added = await journal.addUp(bucket);
    updates += added.updates;
    bucket = added.next;
    // At most half of the time MongoDB works for this.
    await pause(monotonicMs() - startedMs, signal);
  }
  return updates;
}
