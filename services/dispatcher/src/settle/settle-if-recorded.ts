import { isFinal } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type {
  DeliveryStore,
  RecordedDelivery,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { lastingHeaders } from '../isolation/defer-attempt.ts';
import type { Settle } from './settle-delivery.ts';

export interface MadeBeforeDeps {
  deliveries: Pick<DeliveryStore, 'recordedOf'>;
  settle: Settle;
}

/**
 * True when the attempt was made before and nothing is left to do. For records that somebody may
 * have begun, when nobody works on them any more.
 */
export type MadeBefore = (due: DueAttempt, headers: LogRecord['headers']) => Promise<boolean>;

const LOOK_UPS = { maxItems: 200, lingerMs: 2, maxInFlight: 2 };

/**
 * The delivery's own document is the mark that an attempt is done: it is there before the offset is,
 * costs the hot path nothing, and holds without Redis.
 */
export function createMadeBefore({ deliveries, settle }: MadeBeforeDeps): MadeBefore {
  const look = createBatcher<string, RecordedDelivery | undefined>({
    ...LOOK_UPS,
    run: async (ids) => {
      const recorded = await keepTrying(() => deliveries.recordedOf(ids));
      return ids.map((id) => recorded.get(id));
    },
  });
  return async (due, headers) => {
    // Whether a resend was made is decided by its mark.
    const recorded = due.trigger === 'resend' ? undefined : await look.add(due.deliveryId);
    if (!recorded) return false;
    if (isFinal(recorded.status) || recorded.attemptCount > due.attemptNumber) return true;
    if (recorded.attemptCount < due.attemptNumber || !recorded.lastAttempt) return false;
    // It failed, and who made it may have died before the failure was published.
    const attempt = recorded.lastAttempt;
    await settle({ due, attempt, headers: lastingHeaders(headers), isKnown: true });
    return true;
  };
}
