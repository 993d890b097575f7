import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';

interface EraseNotedDeps extends LeaseHolder {
  erasure: Pick<PayloadErasure, 'hasDue' | 'checkNoted'>;
  requested: Pick<RequestedErasures, 'hasDue' | 'eraseDue'>;
  nowMs: () => number;
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
  const { hasDue, checkNoted: erase } = erasure;
  return createErasureLoop(deps, { name: 'erasure of payloads', lease, hasDue, erase });
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
    hasDue: requested.hasDue,
    erase: requested.eraseDue,
  });
}

interface ErasureJob {
  name: string;
  lease: string;
  hasDue: (nowMs: number) => Promise<boolean>;
  /** Returns how many messages were due. `betweenSlices` is called between parts of a message. */
  erase: (betweenSlices: () => Promise<void>) => Promise<number>;
}

/**
 * A tick ends when no message is due, and does nothing while another process has the lease. It works half of the time, so that
 * 200 messages of 10,000 deliveries leave MongoDB time for everything else.
 */
function createErasureLoop(deps: EraseNotedDeps, { name, lease, hasDue, erase }: ErasureJob): Loop {
  const { monotonicMs, pause } = deps;
  return createLeasedLoop({
    ...deps,
    name,
    lease,
    everyMs: EVERY_MS,
    async run(keep, signal) {
      const betweenSlices = async (): Promise<void> => void (await keep());
      if (!(await hasDue(deps.nowMs()))) return;
      while (await keep()) {
        const beganAtMs = monotonicMs();
        if ((await erase(betweenSlices)) === 0) return;
        await pause(monotonicMs() - beganAtMs, signal);
      }
    },
  });
}
