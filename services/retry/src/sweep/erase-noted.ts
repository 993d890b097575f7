import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

interface EraseNotedDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  leases: LeaseStore;
  erasure: Pick<PayloadErasure, 'checkNoted'>;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  rest: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
}

const LEASE = 'erase-payloads';
const EVERY_MS = 2_000;

/**
 * Erases the payloads of the messages that dispatchers have noted, once all their deliveries are delivered. A tick ends
 * when no message is left whose time has come, and does nothing while another process holds the lease.
 */
export function createEraseNoted(deps: EraseNotedDeps): Loop {
  const { leases, holder, logger } = deps;
  const loop = createLoop({
    name: 'erasure of payloads',
    everyMs: EVERY_MS,
    run: (signal) =>
      ifLeaseIsFree(leases, { name: LEASE, holder }, (renew) =>
        checkAll(deps, async () => !signal.aborted && (await renew()), signal),
      ),
    logger,
  });
  return { start: loop.start, tick: loop.tick, stop: () => stopSoon(loop) };
}

/** Works half of the time, so that 200 messages of 10,000 deliveries do not keep MongoDB from anything else. */
async function checkAll(
  { erasure, monotonicMs, rest }: EraseNotedDeps,
  keepLease: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const beganAtMs = monotonicMs();
    if ((await erasure.checkNoted()) === 0) return;
    await rest(monotonicMs() - beganAtMs, signal);
    if (!(await keepLease())) return;
  }
}
