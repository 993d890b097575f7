import type { KafkaMessage } from 'kafkajs';
import type { LogRecord } from './record-log.ts';

/** Returns key, value and headers of a record. A missing key is empty, a missing value too; headers become text. */
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
