import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

interface EraseNotedDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  leases: LeaseStore;
  erasure: Pick<PayloadErasure, 'checkNoted'>;
  requested: Pick<RequestedErasures, 'eraseDue'>;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
}

const LEASE = 'erase-payloads';
const EVERY_MS = 2_000;

/**
 * Erases the payloads of the messages that dispatchers have noted, once all their deliveries are delivered, and once more
 * those that clients have erased two minutes ago. A tick ends when no message is due, and does nothing while another
 * process has the lease. It works half of the time, so that 200 messages of 10,000 deliveries leave MongoDB time for
 * everything else.
 */
export function createEraseNoted(deps: EraseNotedDeps): Loop {
  const { leases, holder, erasure, requested, monotonicMs, pause, logger } = deps;
  const loop = createLoop({
    name: 'erasure of payloads',
    everyMs: EVERY_MS,
    run: (signal) =>
      ifLeaseIsFree(leases, { name: LEASE, holder }, async (renew) => {
        do {
          const beganAtMs = monotonicMs();
          const erased = await requested.eraseDue();
          if (erased + (await erasure.checkNoted()) === 0) return;
          await pause(monotonicMs() - beganAtMs, signal);
        } while (!signal.aborted && (await renew()));
      }),
    logger,
  });
  return { start: loop.start, tick: loop.tick, stop: () => stopSoon(loop) };
}
