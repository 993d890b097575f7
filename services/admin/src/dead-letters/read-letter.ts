import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  decodeDeliveryFailed,
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  refOf,
  UnreadableRecordError,
  type DeliveryRef,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import { delayTopicsAmong, topicNames } from '@posthorn/domain/records/topics.ts';
import {
  readDeadLetter,
  type DeadLetter,
} from '@posthorn/platform/dead-letters/dead-letter-record.ts';
import type { StoredRecord } from '@posthorn/platform/kafka/reading/read-topic.ts';

/** What the record of a letter says, as far as this version can read it. */
export interface LetterContent extends DeliveryRef {
  deliveryId: string;
  /** The attempt that is made when the record is read again. */
  nextAttemptNumber: number;
  /** What else an operator may want to see; never the payload. */
  details: Readonly<Record<string, string | number | boolean | null>>;
}

export interface Letter extends DeadLetter {
  /** True where the record came from a topic that Posthorn reads. */
  hasKnownSource: boolean;
  /** Null when the record cannot be read. */
  content: LetterContent | null;
}

type Decode = (value: Buffer) => LetterContent;

/** Reads letters of the installation whose topics have this prefix. */
export function createLetterReader(prefix: string): (record: StoredRecord) => Letter {
  return (record) => {
    const letter = readDeadLetter(record);
    const decode = decoderOf(prefix, letter.source.topic);
    const content = decode && readRecord(() => decode(letter.record.value));
    return {
      ...letter,
      hasKnownSource: decode !== null,
      content: content instanceof UnreadableRecordError ? null : content,
    };
  };
}

function decoderOf(prefix: string, topic: string): Decode | null {
  const names = topicNames(prefix, [], []);
  if (topic === names.messageCreated) return (value) => contentOfDue(decodeMessageCreated(value));
  if (topic === names.deliveryFailed) return contentOfFailed;
  const isDelayTopic = delayTopicsAmong(prefix, [topic]).size > 0;
  const isDue = isDelayTopic || topic === names.retryDue || topic === names.slowLane;
  return isDue ? (value) => contentOfDue(decodeRetryDue(value)) : null;
}

function contentOfDue(due: DueAttempt): LetterContent {
  const { attemptNumber, trigger, dueAtMs, payload } = due;
  return {
    ...refOf(due),
    deliveryId: due.deliveryId,
    nextAttemptNumber: attemptNumber,
    details: {
      attemptNumber,
      trigger,
      dueAt: isoTime(dueAtMs),
      ...(payload && { payloadBytes: payload.length }),
    },
  };
}

function contentOfFailed(value: Buffer): LetterContent {
  const failed = decodeDeliveryFailed(value);
  const { messageId, webhookId, attemptNumber, outcome, statusCode, endedAtMs } = failed;
  return {
    ...refOf(failed),
    deliveryId: deliveryIdOf(messageId, webhookId),
    nextAttemptNumber: attemptNumber + 1,
    details: { attemptNumber, outcome, statusCode, endedAt: isoTime(endedAtMs) },
  };
}

/** As text also where the number is no time that a date can hold. */
export function isoTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}
