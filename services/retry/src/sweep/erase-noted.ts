import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

interface EraseNotedDeps {
  /** Names this process as the holder of the leases. */
  holder: string;
  leases: LeaseStore;
  erasure: Pick<PayloadErasure, 'checkNoted'>;
  requested: Pick<RequestedErasures, 'eraseDue'>;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
}

const EVERY_MS = 2_000;

/** Erases the payloads of the messages that dispatchers have noted, once all their deliveries are delivered. */
export function createEraseNoted(deps: EraseNotedDeps): Loop {
  const { erasure } = deps;
  const lease = 'erase-payloads';
  return createErasureLoop(deps, { name: 'erasure of payloads', lease, erase: erasure.checkNoted });
}

/**
 * Erases once more what clients have erased two minutes ago. Apart from the other loop: 20 messages to 10,000 webhooks each
 * take 12 s, and the payloads of all other companies had to wait for them.
 */
export function createEraseRequested(deps: EraseNotedDeps): Loop {
  const { requested } = deps;
  return createErasureLoop(deps, {
    name: 'erasure of what clients have erased',
    lease: 'erase-requested',
    erase: requested.eraseDue,
  });
}

interface ErasureJob {
  name: string;
  lease: string;
  /** Returns how many messages were due. `betweenSlices` is called between parts of a message. */
  erase: (betweenSlices: () => Promise<void>) => Promise<number>;
}

/**
 * A tick ends when no message is due, and does nothing while another process has the lease. It works half of the time, so that
 * 200 messages of 10,000 deliveries leave MongoDB time for everything else.
 */
function createErasureLoop(deps: EraseNotedDeps, { name, lease, erase }: ErasureJob): Loop {
  const { leases, holder, monotonicMs, pause, logger } = deps;
  const loop = createLoop({
    name,
    everyMs: EVERY_MS,
    run: (signal) =>
      ifLeaseIsFree(leases, { name: lease, holder }, async (renew) => {
        const keep = async (): Promise<void> => void (await renew());
        do {
          const beganAtMs = monotonicMs();
          if ((await erase(keep)) === 0) return;
          await pause(monotonicMs() - beganAtMs, signal);
        } while (!signal.aborted && (await renew()));
      }),
    logger,
  });
  return { start: loop.start, tick: loop.tick, stop: () => stopSoon(loop) };
}
