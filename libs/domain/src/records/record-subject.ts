import { refOf, type DeliveryRef } from '../message/delivery.ts';
import { deliveryIdOf } from '../ids/ids.ts';
import { logFieldsOf, type DeliveryLogFields } from './log-fields.ts';
import {
  decodeDeliveryFailed,
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
} from './records.ts';
import { delayTopicsAmong, topicNames } from './topics.ts';

/** What a record is about, whichever topic it is of. */
export interface RecordSubject extends DeliveryRef {
  deliveryId: string;
  /** Number of the attempt that follows when the record is processed. */
  nextAttemptNumber: number;
  /** When the attempt ended whose failure it tells, in milliseconds since 1970; null for other records. */
  endedAtMs: number | null;
}

type RecordKind = 'message_created' | 'delivery_failed' | 'retry_due';

/** What the records of a topic are; null when it is not one that a service of this installation reads. */
export function recordKindOf(prefix: string, topic: string): RecordKind | null {
  const names = topicNames(prefix, [], []);
  if (topic === names.messageCreated) return 'message_created';
  if (topic === names.deliveryFailed) return 'delivery_failed';
  const isDelayTopic = delayTopicsAmong(prefix, [topic]).size > 0;
  const isDue = isDelayTopic || topic === names.retryDue || topic === names.slowLane;
  return isDue ? 'retry_due' : null;
}

/** Throws UnreadableRecordError. */
export function subjectOf(kind: RecordKind, value: Buffer): RecordSubject {
  if (kind === 'delivery_failed') {
    const failed = decodeDeliveryFailed(value);
    const deliveryId = deliveryIdOf(failed.messageId, failed.webhookId);
    const nextAttemptNumber = failed.attemptNumber + 1;
    return { ...refOf(failed), deliveryId, nextAttemptNumber, endedAtMs: failed.endedAtMs };
  }
  const due = kind === 'message_created' ? decodeMessageCreated(value) : decodeRetryDue(value);
  const { deliveryId, attemptNumber: nextAttemptNumber } = due;
  return { ...refOf(due), deliveryId, nextAttemptNumber, endedAtMs: null };
}

/** The ids that a record names, for a log line; null when it cannot be read. */
export function logFieldsIn(
  prefix: string,
  { topic, value }: { topic: string; value: Buffer },
): DeliveryLogFields | null {
  const kind = recordKindOf(prefix, topic);
  const subject = kind && readRecord(() => subjectOf(kind, value));
  return subject === null || subject instanceof UnreadableRecordError ? null : logFieldsOf(subject);
}
