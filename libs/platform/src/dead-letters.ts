import { Counter, type Registry } from 'prom-client';
import type { LogRecord, OutgoingRecord, RecordLog } from './kafka/record-log.ts';
import type { Logger } from './logger.ts';

export type DeadLetterReason = 'unreadable_record' | 'schedule_exhausted' | 'message_missing';

export interface DeadLetters {
  /** Keeps the record as it came, with the reason and where it was; resolves when Kafka has it. */
  put: (record: LogRecord, reason: DeadLetterReason, detail: string) => Promise<void>;
}

/** The last stop of what cannot go on. Headers say why; the value is the untouched record, for a replay. */
export function createDeadLetters(
  topic: string,
  { log, logger, registry }: { log: RecordLog; logger: Logger; registry: Registry },
): DeadLetters {
  const total = new Counter({
    name: 'posthorn_dead_letter_records_total',
    help: 'Records put to the dead letters.',
    labelNames: ['reason'],
    registers: [registry],
  });
  return {
    async put(record, reason, detail) {
      await log.publish([toDeadLetter(topic, record, reason, detail)]);
      total.inc({ reason });
      const { topic: source, partition, offset } = record;
      logger.warn(
        { reason, detail, topic: source, partition, offset },
        'record put to dead letters',
      );
    },
  };
}

function toDeadLetter(
  topic: string,
  { key, value, headers, topic: source, partition, offset }: LogRecord,
  reason: DeadLetterReason,
  detail: string,
): OutgoingRecord {
  const place = { 'source-topic': source, 'source-offset': `${partition}:${offset}` };
  return { topic, key, value, headers: { ...headers, ...place, reason, detail } };
}
