import { Counter, type Registry } from 'prom-client';
import { cutDeadLetter, toDeadLetter, type DeadLetterReason } from './dead-letter-record.ts';
import type { LogRecord, RecordLog } from '../kafka/record-log.ts';
import { isTooLarge } from '../kafka/too-large.ts';
import type { Logger } from '../service/logger.ts';

export interface DeadLetters {
  /** Keeps the record as it came, with the reason and where it was; resolves when Kafka has it. */
  put: (record: LogRecord, reason: DeadLetterReason, detail: string) => Promise<void>;
}

/** The last stop of what cannot go on. */
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
      try {
        await log.publish([toDeadLetter(topic, record, reason, detail)]);
      } catch (error) {
        if (!isTooLarge(error)) throw error;
        // The record was just small enough for its own topic; trying again would hold its partition for ever.
        await log.publish([cutDeadLetter(topic, record, reason, detail)]);
      }
      total.inc({ reason });
      const { topic: source, partition, offset } = record;
      logger.warn(
        { reason, detail, topic: source, partition, offset },
        'record put to dead letters',
      );
    },
  };
}
