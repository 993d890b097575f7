/**
 * The headers of Posthorn's records in Kafka. Values are text: a time is the decimal number of its milliseconds since
 * 1970, a duration that of its milliseconds.
 */
export type RecordHeaders = Readonly<Record<string, string>>;

/** Id of the request with the message, for log lines. On every record of a delivery. */
export const REQUEST_ID_HEADER = 'requestId';

/** Trace context of that request (W3C Trace Context, 3.2), as the client sent it; absent without one. */
export const TRACEPARENT_HEADER = 'traceparent';

/** The event type of the message; absent without one. */
export const EVENT_TYPE_HEADER = 'event-type';

/** The due time of a parked or deferred record. Equals `dueAtMs` in its value. */
export const DUE_AT_HEADER = 'due-at';

/**
 * The reserved time of a deferred attempt. The sweep writes it too, on the attempts that it publishes again. The
 * attempt may have been made meanwhile, so the dispatcher reads the recorded delivery first.
 */
export const TURN_AT_HEADER = 'turn-at';

/** The time of the first deferral by a circuit; absent without one. */
export const DEFERRED_SINCE_HEADER = 'deferred-since';

/**
 * The duration that was added to the due time of a deferred record because the releasing clock is ahead of the
 * deferring one.
 */
export const CLOCK_AHEAD_HEADER = 'clock-ahead';

/** The MAC of the record (platform/kafka/publishing/record-mac.ts). On every record. */
export const MAC_HEADER = 'mac';

/** On a dead letter: the MAC that the record had in its topic. */
export const SOURCE_MAC_HEADER = 'source-mac';

/** On a dead letter: the topic of the record. */
export const SOURCE_TOPIC_HEADER = 'source-topic';

/** On a dead letter: `partition:offset` of the record in that topic. */
export const SOURCE_OFFSET_HEADER = 'source-offset';

/** On a dead letter: the reason, a word of a closed list. */
export const DEAD_REASON_HEADER = 'reason';

/** On a dead letter: the reason in a sentence, for a person. */
export const DEAD_DETAIL_HEADER = 'detail';

/** On a dead letter with only the beginning of its record: the number of bytes of the value. */
export const CUT_FROM_BYTES_HEADER = 'cut-from-bytes';

/** 15 digits: times up to the year 33658. */
const MILLISECONDS = /^\d{1,15}$/;

/** Returns the time or duration in a header, in milliseconds; null when it is missing or unreadable. */
export function readMs(headers: RecordHeaders, name: string): number | null {
  const text = headers[name];
  return text !== undefined && MILLISECONDS.test(text) ? Number(text) : null;
}

/** Returns the headers of every record of a message. */
export function headersOfMessage({
  requestId,
  traceparent,
  eventType,
}: {
  requestId: string;
  traceparent?: string | undefined;
  eventType?: string | null | undefined;
}): RecordHeaders {
  return {
    [REQUEST_ID_HEADER]: requestId,
    ...(traceparent && { [TRACEPARENT_HEADER]: traceparent }),
    ...(eventType && { [EVENT_TYPE_HEADER]: eventType }),
  };
}

/** Returns the headers of every record of a delivery; the others belong to one attempt. */
export function lastingHeaders(headers: RecordHeaders): RecordHeaders {
  const names = [REQUEST_ID_HEADER, TRACEPARENT_HEADER, EVENT_TYPE_HEADER];
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])),
  );
}
