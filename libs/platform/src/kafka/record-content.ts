import type { KafkaMessage } from 'kafkajs';
import type { LogRecord } from './record-log.ts';

/** What a record carries, however it was made: without a key, without a value, with odd headers. */
export function contentOf({
  key,
  value,
  headers,
}: Pick<KafkaMessage, 'key' | 'value' | 'headers'>): Pick<LogRecord, 'key' | 'value' | 'headers'> {
  return {
    key: key?.toString() ?? '',
    value: value ?? Buffer.alloc(0),
    headers: Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
}
