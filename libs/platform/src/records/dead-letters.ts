import { logFieldsIn } from '@posthorn/domain/records/records.ts';
import { Counter, type Registry } from 'prom-client';
import {
  cutDeadLetter,
  DEAD_LETTER_REASONS,
  toDeadLetter,
  type DeadLetterReason,
} from './dead-letter-record.ts';
import type { LogRecord, RecordLog } from '../kafka/record-log.ts';
import { isRecordTooLarge } from '../kafka/publishing/record-too-large.ts';
import type { ReportIncident } from './operator-incidents.ts';
import type { Logger } from '../service/logger.ts';
import { startAtZero } from '../service/metrics.ts';

export interface DeadLetters {
  /** Publishes the record unchanged, with the reason and its place. Resolves when Kafka has it. */
  put: (record: LogRecord, reason: DeadLetterReason, detail: string) => Promise<void>;
}

interface DeadLettersDeps {
  records: RecordLog;
  /** TOPIC_PREFIX, by which the kind of a record is known. */
  prefix: string;
  logger: Logger;
  registry: Registry;
  /** Tells the operator of each. */
  report: ReportIncident;
}

/** The topic of the records that cannot be handled. */
export function createDeadLetters(
  topic: string,
  { records, prefix, logger, registry, report }: DeadLettersDeps,
): DeadLetters {
  const total = new Counter({
    name: 'posthorn_dead_letter_records_total',
    help: 'Records that were published as dead letters.',
    labelNames: ['reason'],
    registers: [registry],
  });
  startAtZero(total, 'reason', DEAD_LETTER_REASONS);
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
      const ids = logFieldsIn(prefix, record);
      report({
        type: reason === 'schedule_exhausted' ? 'delivery.exhausted' : 'dead_letter.written',
        // The detail of an unproven record comes from a stranger and is not shown to a person.
        companyId: reason === 'unproven_record' ? null : (ids?.companyId ?? null),
        webhookId: reason === 'unproven_record' ? null : (ids?.webhookId ?? null),
        detail: `${reason}: ${detail}`,
      });
      logger.warn(
        { ...ids, reason, detail, topic: source, partition, offset },
        'record published as a dead letter',
      );
    },
  };
}
