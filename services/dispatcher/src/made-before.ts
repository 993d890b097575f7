import { isFinal } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { DeliveryStore, RecordedDelivery } from '@posthorn/platform/mongo/deliveries.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';
import type { Settle } from './settle-delivery.ts';

export interface MadeBeforeDeps {
  deliveries: Pick<DeliveryStore, 'recordedOf'>;
  running: Pick<RunningAttempts, 'among'>;
  settle: Settle;
  wait: (ms: number) => Promise<unknown>;
}

/**
 * True when the attempt was made before and nothing is left to do. For records that somebody may
 * have begun: of a partition that changed hands, or read a second time over another topic.
 */
export type MadeBefore = (due: DueAttempt, headers: LogRecord['headers']) => Promise<boolean>;

interface Found {
  recorded: RecordedDelivery | undefined;
  isRunning: boolean;
}

const LOOK_UPS = { maxItems: 200, lingerMs: 2, maxInFlight: 2 };
const ASK_AGAIN_MS = 250;

/**
 * The delivery's own document is the mark that an attempt is done: it is there before the offset is,
 * costs the hot path nothing, and holds without Redis.
 */
export function createMadeBefore(deps: MadeBeforeDeps): MadeBefore {
  const look = createBatcher<DueAttempt, Found>({ ...LOOK_UPS, run: (batch) => find(deps, batch) });
  return async (due, headers) => {
    let found = await look.add(due);
    while (found.isRunning) {
      await deps.wait(ASK_AGAIN_MS);
      found = await look.add(due);
    }
    const { recorded } = found;
    // Whether a resend was made is decided by its mark.
    if (!recorded || due.trigger === 'resend') return false;
    if (isFinal(recorded.status) || recorded.attemptCount > due.attemptNumber) return true;
    if (recorded.attemptCount < due.attemptNumber || !recorded.lastAttempt) return false;
    // It failed, and who made it may have died before the failure was published.
    await deps.settle({ due, attempt: recorded.lastAttempt, headers });
    return true;
  };
}

async function find(deps: MadeBeforeDeps, batch: readonly DueAttempt[]): Promise<Found[]> {
  // First who is under way, then what is recorded: an attempt that ends in between is seen.
  const running = await deps.running
    .among(batch.map(({ attemptId }) => attemptId))
    .catch(() => new Set<string>());
  const recorded = await keepTrying(() =>
    deps.deliveries.recordedOf(batch.map(({ deliveryId }) => deliveryId)),
  );
  return batch.map(({ deliveryId, attemptId }) => ({
    recorded: recorded.get(deliveryId),
    isRunning: running.has(attemptId),
  }));
}
