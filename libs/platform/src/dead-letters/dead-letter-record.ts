import type { StoredRecord } from '../kafka/reading/read-topic.ts';
import type { LogRecord, OutgoingRecord } from '../kafka/record-log.ts';

export const DEAD_LETTER_REASONS = [
  'unreadable_record',
  'schedule_exhausted',
  'message_missing',
] as const;

export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

export interface DeadLetter {
  /** `partition:offset` in the topic of the dead letters. */
  id: string;
  /** When it was put there, in milliseconds since 1970. */
  atMs: number;
  /** One of DEAD_LETTER_REASONS, unless another version or another program wrote it. */
  reason: string;
  detail: string;
  /** Where the record was; `place` is `partition:offset` there. */
  source: { topic: string; place: string };
  /** The record itself, for a replay. */
  record: Pick<LogRecord, 'key' | 'value' | 'headers'>;
  /** How many bytes its value had when only the beginning of it is here; null when it is whole. */
  cutFromBytes: number | null;
}

const HEADER = {
  topic: 'source-topic',
  place: 'source-offset',
  reason: 'reason',
  detail: 'detail',
  cutFromBytes: 'cut-from-bytes',
} as const;

const OWN_HEADERS: ReadonlySet<string> = new Set(Object.values(HEADER));

/** Enough to see what it was. */
const CUT_VALUE_BYTES = 65_536;
const CUT_KEY_CHARS = 256;

/** Headers say why and whence; the value is the untouched record. */
export function toDeadLetter(
  topic: string,
  { key, value, headers, topic: source, partition, offset }: LogRecord,
  reason: DeadLetterReason,
  detail: string,
): OutgoingRecord {
  const place = { [HEADER.topic]: source, [HEADER.place]: `${partition}:${offset}` };
  const why = { [HEADER.reason]: reason, [HEADER.detail]: detail };
  return { topic, key, value, headers: { ...withoutOwn(headers), ...place, ...why } };
}

/** For a record that fills its batch so far that the headers above find no room: its beginning. */
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
    headers: { ...headers, [HEADER.cutFromBytes]: String(record.value.length) },
  };
}

export function readDeadLetter({
  partition,
  offset,
  atMs,
  key,
  value,
  headers,
}: StoredRecord): DeadLetter {
  const cut = headers[HEADER.cutFromBytes];
  return {
    id: `${partition}:${offset}`,
    atMs,
    reason: headers[HEADER.reason] ?? '',
    detail: headers[HEADER.detail] ?? '',
    source: { topic: headers[HEADER.topic] ?? '', place: headers[HEADER.place] ?? '' },
    record: { key, value, headers: withoutOwn(headers) },
    cutFromBytes: cut === undefined ? null : Number(cut),
  };
}

/** A record that happens to carry a header of these names loses it. */
function withoutOwn(headers: LogRecord['headers']): LogRecord['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name)));
}
