import { Counter, type Registry } from 'prom-client';
import { cutDeadLetter, toDeadLetter, type DeadLetterReason } from './dead-letter-record.ts';
import type { LogRecord, RecordLog } from '../kafka/record-log.ts';
import { isRecordTooLarge } from '../kafka/publishing/record-too-large.ts';
import type { Logger } from '../service/logger.ts';

export interface DeadLetters {
  /** Publishes the record unchanged, with the reason and its place. Resolves when Kafka has it. */
  put: (record: LogRecord, reason: DeadLetterReason, detail: string) => Promise<void>;
}

/** The topic of the records that cannot be handled. */
export function createDeadLetters(
  topic: string,
  { records, logger, registry }: { records: RecordLog; logger: Logger; registry: Registry },
): DeadLetters {
  const total = new Counter({
    name: 'posthorn_dead_letter_records_total',
    help: 'Records that were published as dead letters.',
    labelNames: ['reason'],
    registers: [registry],
  });
  return {
    async put(record, reason, detail) {
      try {
        await records.publish([toDeadLetter(topic, record, reason, detail)]);
      } catch (error) {
        if (!isRecordTooLarge(error)) throw error;
        // The record is just small enough for its own topic. Trying again would block its partition for ever.
        await records.publish([cutDeadLetter(topic, record, reason, detail)]);
      }
      total.inc({ reason });
      const { topic: source, partition, offset } = record;
      logger.warn(
        { reason, detail, topic: source, partition, offset },
        'record published as a dead letter',
      );
    },
  };
}
