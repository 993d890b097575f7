import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import {
  decodeDeliveryFailed,
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import { refOf } from '@posthorn/domain/message/delivery.ts';
import { recordKindOf, type RecordSubject } from '@posthorn/domain/records/record-subject.ts';
import {
  readDeadLetter,
  type DeadLetter,
} from '@posthorn/platform/dead-letters/dead-letter-record.ts';
import type { StoredRecord } from '@posthorn/platform/kafka/reading/read-topic.ts';

/** The content of a letter's record. */
export interface LetterContent extends Omit<RecordSubject, 'endedAtMs'> {
  /** Other fields for an operator to see; never the payload. */
  details: Readonly<Record<string, string | number | boolean | null>>;
}

export interface Letter extends DeadLetter {
  /** True if the record came from a topic that Posthorn reads. */
  hasKnownSource: boolean;
  /** Null when this version cannot read the record. */
  content: LetterContent | null;
}

type Decode = (value: Buffer) => LetterContent;

/** Returns a function that parses letters of the installation whose topics have this prefix. */
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
  switch (recordKindOf(prefix, topic)) {
    case 'message_created':
      return (value) => contentOfDue(decodeMessageCreated(value));
    case 'delivery_failed':
      return contentOfFailed;
    case 'retry_due':
      return (value) => contentOfDue(decodeRetryDue(value));
    case null:
      return null;
  }
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

/** Returns ISO 8601, or the number itself if no date can hold it. */
export function isoTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}
