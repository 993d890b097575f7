import { isFinal, type Attempt, type RecordedDelivery } from '@posthorn/domain/message/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';

/** What is left to do of an attempt, by what is recorded of its delivery. */
export type Remaining =
  | { kind: 'send' }
  /** It failed, and whoever recorded it may have died before the failure was published. */
  | { kind: 'publish_failure'; attempt: Attempt }
  /** Everything is done; or it is a resend that was made or given up. */
  | { kind: 'drop' };

/** Looks up what is recorded, and changes nothing. */
export type CheckRecorded = (due: DueAttempt) => Promise<Remaining>;

export interface CheckRecordedDeps {
  deliveries: Pick<DeliveryStore, 'recordedOf'>;
  marks: Pick<ResendMarks, 'askedNumbers'>;
  keepTrying: KeepTrying;
}

const SEND: Remaining = { kind: 'send' };
const DROP: Remaining = { kind: 'drop' };

const DELIVERY_READS = { maxItems: 200, lingerMs: 2, maxInFlight: 2 };
const MARK_READS = { maxItems: 200, lingerMs: 1, maxInFlight: 2 };

/**
 * The document of a delivery tells whether an attempt was made, and the mark of a resend whether it
 * is still asked for. Both are written before the offset of the record is committed, and both are
 * there when Redis is not (docs/decisions/0016-the-delivery-is-its-done-mark.md).
 */
export function createCheckRecorded({
  deliveries,
  marks,
  keepTrying,
}: CheckRecordedDeps): CheckRecorded {
  const readDelivery = createBatcher<string, RecordedDelivery | undefined>({
    ...DELIVERY_READS,
    run: async (ids) => {
      const recorded = await keepTrying('look up recorded attempts', () =>
        deliveries.recordedOf(ids),
      );
      return ids.map((id) => recorded.get(id));
    },
  });
  const readMark = createBatcher<string, number | undefined>({
    ...MARK_READS,
    run: async (ids) => {
      const numbers = await keepTrying('look up the marks of resends', () =>
        marks.askedNumbers(ids),
      );
      return ids.map((id) => numbers.get(id));
    },
  });
  return async (due) =>
    due.trigger === 'resend'
      ? remainingOfResend(due, await readMark.add(due.deliveryId))
      : remainingOf(due, await readDelivery.add(due.deliveryId));
}

function remainingOfResend(due: DueAttempt, askedNumber: number | undefined): Remaining {
  return askedNumber === due.attemptNumber ? SEND : DROP;
}

function remainingOf(due: DueAttempt, recorded: RecordedDelivery | undefined): Remaining {
  if (!recorded) return SEND;
  if (isFinal(recorded.status) || recorded.attemptCount > due.attemptNumber) return DROP;
  if (recorded.attemptCount < due.attemptNumber || !recorded.lastAttempt) return SEND;
  return { kind: 'publish_failure', attempt: recorded.lastAttempt };
}
