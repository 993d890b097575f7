/**
 * Every header that Posthorn writes on a Kafka record. Values are text. A time is written as the
 * decimal digits of milliseconds since 1970, a duration as those of its milliseconds.
 */
type RecordHeaders = Readonly<Record<string, string>>;

/** Id of the request that brought the message, for log lines. On every record of a delivery. */
export const REQUEST_ID_HEADER = 'requestId';

/** Trace context of that request (W3C Trace Context, 3.2), as the client sent it; absent without one. */
export const TRACEPARENT_HEADER = 'traceparent';

/** When a parked or deferred record is due, as a time. Equals `dueAtMs` in its value. */
export const DUE_AT_HEADER = 'due-at';

/**
 * The turn of a deferred attempt, as a time. The sweep writes it too, on what it publishes again. The
 * attempt may have been made meanwhile, so what is recorded is read before it is made.
 */
export const TURN_AT_HEADER = 'turn-at';

/** Since when a circuit has deferred the attempt, as a time; absent when none has. */
export const DEFERRED_SINCE_HEADER = 'deferred-since';

/**
 * How much was added to the due time of a deferred record because the clock that releases it is
 * ahead of the clock that deferred it, as a duration.
 */
export const CLOCK_AHEAD_HEADER = 'clock-ahead';

/** The MAC of the record (platform/kafka/publishing/record-mac.ts). On every record. */
export const MAC_HEADER = 'mac';

/** On a dead letter: the MAC that the record had in its topic. */
export const SOURCE_MAC_HEADER = 'source-mac';

/** On a dead letter: the topic that the record was read from. */
export const SOURCE_TOPIC_HEADER = 'source-topic';

/** On a dead letter: `partition:offset` of the record in that topic. */
export const SOURCE_OFFSET_HEADER = 'source-offset';

/** On a dead letter: why it is one, a word of a closed list. */
export const DEAD_REASON_HEADER = 'reason';

/** On a dead letter: the reason in a sentence, for a person. */
export const DEAD_DETAIL_HEADER = 'detail';

/** On a dead letter that holds only the beginning of its record: how many bytes the value had. */
export const CUT_FROM_BYTES_HEADER = 'cut-from-bytes';

/** 15 digits: times up to the year 33658. */
const MILLISECONDS = /^\d{1,15}$/;

/** The time or duration in a header, in milliseconds; null when it is missing or not readable. */
export function readMs(headers: RecordHeaders, name: string): number | null {
  const text = headers[name];
  return text !== undefined && MILLISECONDS.test(text) ? Number(text) : null;
}

/** The headers that stay on every record of a delivery; the others belong to one attempt. */
export function lastingHeaders({ requestId, traceparent }: RecordHeaders): RecordHeaders {
  return {
    ...(requestId && { [REQUEST_ID_HEADER]: requestId }),
    ...(traceparent && { [TRACEPARENT_HEADER]: traceparent }),
  };
}
