import { EXHAUST_REASONS } from '@posthorn/domain/delivery/delivery.ts';
import {
  CUT_FROM_BYTES_HEADER,
  DEAD_DETAIL_HEADER,
  DEAD_REASON_HEADER,
  MAC_HEADER,
  SOURCE_MAC_HEADER,
  SOURCE_OFFSET_HEADER,
  SOURCE_TOPIC_HEADER,
} from '@posthorn/domain/records/record-headers.ts';
import { logFieldsIn } from '@posthorn/domain/records/records.ts';
import type { TopicNames } from '@posthorn/domain/records/topics.ts';
import { Counter, type Registry } from 'prom-client';
import { isRecordTooLarge } from '../kafka/producer.ts';
import type { StoredRecord } from '../kafka/read-topic.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '../kafka/record-log.ts';
import type { Logger } from '../service/logger.ts';
import { startAtZero } from '../service/metrics.ts';
import type { ReportIncident } from './operator-incidents.ts';

/** Why a record cannot be processed. Somebody has to look at it: the alerts are about these. */
const FAULTS = [
  'unreadable_record',
  'message_missing',
  'unproven_record',
  'company_mismatch',
] as const;

/** How a delivery was exhausted: in ordinary operation, by its endpoint. */
const EXHAUSTIONS = ['schedule_exhausted', ...EXHAUST_REASONS] as const;

type Fault = (typeof FAULTS)[number];
type Exhaustion = (typeof EXHAUSTIONS)[number];
export type DeadLetterReason = Fault | Exhaustion;

export const DEAD_LETTER_REASONS: readonly DeadLetterReason[] = [...FAULTS, ...EXHAUSTIONS];

export function isExhaustion(reason: string): reason is Exhaustion {
  return EXHAUSTIONS.some((each) => each === reason);
}

export interface DeadLetters {
  /** Publishes the record unchanged, with the reason and its place. Resolves when Kafka has it. */
  put: (record: LogRecord, reason: DeadLetterReason, detail: string) => Promise<void>;
}

/** Where letters are: exhausted deliveries are many where an endpoint is down, and must not hide the others. */
export type LetterTopics = Pick<TopicNames, 'deadLetters' | 'exhaustedDeliveries'>;

interface DeadLettersDeps {
  records: RecordLog;
  /** TOPIC_PREFIX, by which the kind of a record is known. */
  prefix: string;
  logger: Logger;
  registry: Registry;
  /** Reports each to the operator. */
  report: ReportIncident;
}

/** The topics of the records that cannot be processed, and of those of exhausted deliveries. */
export function createDeadLetters(
  topics: LetterTopics,
  { records, prefix, logger, registry, report }: DeadLettersDeps,
): DeadLetters {
  const total = new Counter({
    name: 'posthorn_dead_letter_records_total',
    help: 'Records that cannot be processed and were published as dead letters.',
    labelNames: ['reason'],
    registers: [registry],
  });
  startAtZero(total, 'reason', FAULTS);
  return {
    async put(record, reason, detail) {
      const isExhausted = isExhaustion(reason);
      const topic = isExhausted ? topics.exhaustedDeliveries : topics.deadLetters;
      try {
        await records.publish([toDeadLetter(topic, record, reason, detail)]);
      } catch (error) {
        if (!isRecordTooLarge(error)) throw error;
        // The record is just small enough for its own topic. Trying again would block its partition for ever.
        await records.publish([cutDeadLetter(topic, record, reason, detail)]);
      }
      if (!isExhausted) total.inc({ reason });
      const { topic: source, partition, offset } = record;
      const ids = logFieldsIn(prefix, record);
      report({
        type: isExhausted ? 'delivery.exhausted' : 'dead_letter.written',
        // The detail of an unproven record comes from a stranger and is not shown to a person.
        companyId: reason === 'unproven_record' ? null : (ids?.companyId ?? null),
        webhookId: reason === 'unproven_record' ? null : (ids?.webhookId ?? null),
        detail: `${reason}: ${detail}`,
      });
      if (isExhausted) return;
      logger.warn(
        { ...ids, reason, detail, topic: source, partition, offset },
        'record published as a dead letter',
      );
    },
  };
}

export interface DeadLetter {
  /** `partition:offset` in its topic. */
  place: string;
  /** When it was published, in milliseconds since 1970. */
  atMs: number;
  /** One of DEAD_LETTER_REASONS, unless another version or program wrote it; '' when it has none. */
  reason: string;
  detail: string;
  /** Where the record was read; `place` is `partition:offset`. */
  source: { topic: string; place: string };
  /** The record itself, for a replay, with the MAC that it had. */
  record: Pick<LogRecord, 'key' | 'value' | 'headers'>;
  /** How many bytes the value had, when only its beginning is here; null when it is complete. */
  cutFromBytes: number | null;
}

const OWN_HEADERS: ReadonlySet<string> = new Set([
  SOURCE_TOPIC_HEADER,
  SOURCE_OFFSET_HEADER,
  DEAD_REASON_HEADER,
  DEAD_DETAIL_HEADER,
  CUT_FROM_BYTES_HEADER,
  MAC_HEADER,
  SOURCE_MAC_HEADER,
]);

/** Enough for a person to recognise the record. */
const CUT_VALUE_BYTES = 65_536;
const CUT_KEY_CHARS = 256;

/** Adds headers with the reason and the source, its MAC among them. Key and value are unchanged. */
export function toDeadLetter(
  topic: string,
  { key, value, headers, topic: source, partition, offset }: LogRecord,
  reason: DeadLetterReason,
  detail: string,
): OutgoingRecord {
  const mac = headers[MAC_HEADER];
  return {
    topic,
    key,
    value,
    headers: {
      ...withoutOwn(headers),
      ...(mac !== undefined && { [SOURCE_MAC_HEADER]: mac }),
      [SOURCE_TOPIC_HEADER]: source,
      [SOURCE_OFFSET_HEADER]: `${partition}:${offset}`,
      [DEAD_REASON_HEADER]: reason,
      [DEAD_DETAIL_HEADER]: detail,
    },
  };
}

/** Keeps only the beginning of a record that is too large to publish with the added headers. */
export function cutDeadLetter(
  topic: string,
  record: LogRecord,
  reason: DeadLetterReason,
  detail: string,
): OutgoingRecord {
  const { headers, ...letter } = toDeadLetter(topic, { ...record, headers: {} }, reason, detail);
  return {
    ...letter,
    key: record.key.slice(0, CUT_KEY_CHARS),
    value: record.value.subarray(0, CUT_VALUE_BYTES),
    headers: { ...headers, [CUT_FROM_BYTES_HEADER]: String(record.value.length) },
  };
}

export function readDeadLetter({
  partition,
  offset,
  atMs,
  key,
  value,
  headers,
}: Omit<StoredRecord, 'stored'>): DeadLetter {
  const cut = headers[CUT_FROM_BYTES_HEADER];
  const mac = headers[SOURCE_MAC_HEADER];
  return {
    place: `${partition}:${offset}`,
    atMs,
    reason: headers[DEAD_REASON_HEADER] ?? '',
    detail: headers[DEAD_DETAIL_HEADER] ?? '',
    source: {
      topic: headers[SOURCE_TOPIC_HEADER] ?? '',
      place: headers[SOURCE_OFFSET_HEADER] ?? '',
    },
    record: {
      key,
      value,
      headers: { ...withoutOwn(headers), ...(mac !== undefined && { [MAC_HEADER]: mac }) },
    },
    cutFromBytes: cut === undefined ? null : Number(cut),
  };
}

/** A record that already has headers of these names loses them. */
function withoutOwn(headers: LogRecord['headers']): LogRecord['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name)));
}
