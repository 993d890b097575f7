import { IS_CONTROL, type fetchV17, type KafkaRecord } from '@platformatic/kafka';
import type { FetchedMessage } from '../consumer/fetched-batch.ts';

/** The part of a fetch response for one partition. */
export type PartitionAnswer = fetchV17.FetchResponse['responses'][number]['partitions'][number];

export interface FetchedRecords {
  messages: FetchedMessage[];
  /** The offset to read after all of them. */
  next: number;
}

/** Returns the records from `position` on: a broker sends whole batches, which may begin earlier. */
export function recordsFrom({ records }: PartitionAnswer, position: number): FetchedRecords {
  const messages: FetchedMessage[] = [];
  let next = position;
  for (const batch of records ?? []) {
    const first = Number(batch.firstOffset);
    next = Math.max(next, first + batch.lastOffsetDelta + 1);
    // Control batches mark the end of transactions and hold no records.
    if ((batch.attributes & IS_CONTROL) !== 0) continue;
    for (const record of batch.records) {
      const offset = first + record.offsetDelta;
      if (offset >= position) {
        const timestamp = String(batch.firstTimestamp + record.timestampDelta);
        messages.push(toMessage(offset, timestamp, record));
      }
    }
  }
  return { messages, next };
}

function toMessage(
  offset: number,
  timestamp: string,
  { key, value, headers }: KafkaRecord,
): FetchedMessage {
  return { offset: String(offset), timestamp, key, value, headers: toHeaders(headers) };
}

/** A header that comes twice keeps both values, joined by a comma as kafkajs does. */
function toHeaders(headers: KafkaRecord['headers']): Record<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = name?.toString() ?? '';
    const text = value?.toString() ?? '';
    const before = values.get(key);
    values.set(key, before === undefined ? text : `${before},${text}`);
  }
  return Object.fromEntries(values);
}
