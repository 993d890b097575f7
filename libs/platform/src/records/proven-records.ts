import { logFieldsIn } from '@posthorn/domain/records/records.ts';
import type { OpenRecordLog } from '../kafka/kafka-record-log.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { RecordMac } from '../kafka/record-mac.ts';
import type { ServiceContext } from '../service/run-service.ts';
import { createDeadLetters, type DeadLetters } from './dead-letters.ts';
import { openIncidentReports, type ReportIncident } from './operator-incidents.ts';

type Context = ServiceContext<{ TOPIC_PREFIX: string }>;

/** The log of a service that reads records: those of strangers become dead letters. */
export function openProvenRecords(
  context: Context,
  { records, mac, topics }: Pick<OpenRecordLog, 'records' | 'mac' | 'topics'>,
): { records: RecordLog; deadLetters: DeadLetters; report: ReportIncident } {
  const { config, logger, registry } = context;
  const prefix = config.TOPIC_PREFIX;
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  const letters = { records, prefix, logger, registry, report };
  const deadLetters = createDeadLetters(topics, letters);
  return { records: provenOnly(records, { prefix, mac, deadLetters }), deadLetters, report };
}

interface ProvenOnlyDeps {
  /** TOPIC_PREFIX. */
  prefix: string;
  mac: Pick<RecordMac, 'isProven'>;
  deadLetters: DeadLetters;
}

const UNPROVEN = 'it has no right MAC of a key in ENCRYPTION_KEYS';

/** Returns the log with consumers that get proven records only: those of strangers become dead letters. */
export function provenOnly(records: RecordLog, deps: ProvenOnlyDeps): RecordLog {
  return { ...records, consume: (options) => records.consume(checked(options, deps)) };
}

function checked(
  { handle, delayMs, ...options }: ConsumeOptions,
  { prefix, mac, deadLetters }: ProvenOnlyDeps,
): ConsumeOptions {
  // A record is handled again after an outage, and its value may have been cut meanwhile.
  const proven = new WeakSet<LogRecord>();
  const isProven = (record: LogRecord): boolean => {
    const isKnown = proven.has(record) || mac.isProven(record);
    if (isKnown) proven.add(record);
    return isKnown;
  };
  return {
    logFieldsIn: (record) => logFieldsIn(prefix, record),
    ...options,
    // The due time of a record that will be refused stops nothing behind it.
    ...(delayMs && {
      delayMs: (record: LogRecord, endOffset: number) =>
        isProven(record) ? delayMs(record, endOffset) : 0,
    }),
    handle: (record, isOurs) =>
      isProven(record)
        ? handle(record, isOurs)
        : deadLetters.put(record, 'unproven_record', UNPROVEN),
  };
}
