import {
  type IngestPlace,
  placeKeyOf,
  readPlaceKey,
  REJECT_CODE_HEADER,
  REJECT_CUT_HEADER,
  REJECT_HEADERS_BEGIN,
  REJECT_MESSAGE_HEADER,
  REJECT_SOURCE_HEADER,
  REJECT_TO_OFFSET_HEADER,
  type RejectCode,
} from '@posthorn/domain/ingest.ts';
import { MAX_SEND_BYTES } from '@posthorn/domain/records/topics.ts';
import type { Unreadable } from '../kafka/fetch/record-batches.ts';
import type { KafkaRecordLog } from '../kafka/kafka-record-log.ts';
import { isRecordTooLarge } from '../kafka/producer.ts';
import type { StoredRecord } from '../kafka/read-topic.ts';
import { bytesOfStored, type CopiedRecord, type StoredParts } from '../kafka/record-log.ts';

/** A record of a source that can never be accepted as it is. */
export interface Reject {
  place: IngestPlace;
  code: RejectCode;
  message: string;
  stored: StoredParts;
  /** Of what cannot be read, which is not here: `place` is that of the first one. */
  missing?: Pick<Unreadable, 'lastOffset' | 'bytes'>;
}

/**
 * Publishes the records with their reasons, byte for byte. Resolves when Kafka has all of them. A record that is too
 * large for the topic is cut: to try again would block its partition for ever.
 */
export async function publishRejects(
  log: Pick<KafkaRecordLog, 'publishCopies'>,
  topic: string,
  rejects: readonly Reject[],
): Promise<void> {
  const isSmall = ({ stored }: Reject): boolean => bytesOfStored(stored) < MAX_SEND_BYTES;
  const small = rejects.filter(isSmall).map((each) => copyOf(topic, each));
  if (small.length > 0) await log.publishCopies(small);
  for (const large of rejects.filter((each) => !isSmall(each))) {
    try {
      await log.publishCopies([copyOf(topic, large)]);
    } catch (error) {
      if (!isRecordTooLarge(error)) throw error;
      await log.publishCopies([cutCopyOf(topic, large)]);
    }
  }
}

/** Enough for a person to recognise the record. */
const CUT_VALUE_BYTES = 65_536;
const CUT_KEY_BYTES = 256;
/** A message may quote the name of a header, which may be as long as a record. */
const REASON_CHARS = 1_000;

export function copyOf(topic: string, { stored, ...reject }: Reject): CopiedRecord {
  if (reject.missing) return { topic, key: null, value: null, headers: reasonOf(reject) };
  const { key, value, headers } = stored;
  return { topic, key, value, headers: { ...withoutReason(headers), ...reasonOf(reject) } };
}

/** Keeps the beginning of the record, and none of its headers. */
export function cutCopyOf(topic: string, { stored, ...reject }: Reject): CopiedRecord {
  const { key, value } = stored;
  const cut = { [REJECT_CUT_HEADER]: String(value?.length ?? 0) };
  return {
    topic,
    key: key?.subarray(0, CUT_KEY_BYTES) ?? null,
    value: value?.subarray(0, CUT_VALUE_BYTES) ?? null,
    headers: { ...reasonOf(reject), ...cut },
  };
}

function reasonOf({
  place,
  code,
  message,
  missing,
}: Omit<Reject, 'stored'>): Record<string, string> {
  return {
    [REJECT_CODE_HEADER]: code,
    [REJECT_MESSAGE_HEADER]: message.slice(0, REASON_CHARS),
    [REJECT_SOURCE_HEADER]: placeKeyOf(place),
    ...(missing && {
      [REJECT_TO_OFFSET_HEADER]: String(missing.lastOffset),
      [REJECT_CUT_HEADER]: String(missing.bytes),
    }),
  };
}

/** A rejected record that was copied back into its source had these headers before. */
function withoutReason(headers: StoredParts['headers']): NonNullable<StoredParts['headers']> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).filter(([name]) => !name.startsWith(REJECT_HEADERS_BEGIN)),
  );
}

/** A rejected record as its topic has it. */
export interface StoredReject {
  /** The partition of the topic of rejected records. */
  partition: number;
  offset: number;
  /** When it was rejected, in milliseconds since 1970. */
  atMs: number;
  /** One of REJECT_CODES, unless another version or program wrote it; '' when it has none. */
  code: string;
  message: string;
  /** Null when another program wrote it. */
  place: IngestPlace | null;
  /** The record itself, as its source had it. */
  record: StoredParts;
  /** How many bytes the value had, when only its beginning is here; null when it is complete. */
  cutFromBytes: number | null;
}

export function readReject({
  partition,
  offset,
  atMs,
  headers,
  stored,
}: Omit<StoredRecord, 'topic' | 'key' | 'value'>): StoredReject {
  const cut = headers[REJECT_CUT_HEADER];
  return {
    partition,
    offset,
    atMs,
    code: headers[REJECT_CODE_HEADER] ?? '',
    message: headers[REJECT_MESSAGE_HEADER] ?? '',
    place: readPlaceKey(headers[REJECT_SOURCE_HEADER] ?? ''),
    record: { key: stored.key, value: stored.value, headers: withoutReason(stored.headers) },
    cutFromBytes: cut === undefined ? null : Number(cut),
  };
}
