import { logFieldsIn } from '@posthorn/domain/records/record-subject.ts';
import { Counter, type Registry } from 'prom-client';
import type { DeadLetters } from '../dead-letters/dead-letters.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { RecordMac } from '../kafka/publishing/record-mac.ts';
import type { ConfirmRecord } from './confirm-record.ts';

export const UNPROVEN_RECORDS = ['confirm', 'refuse'] as const;

export interface ProvenOnlyDeps {
  /** TOPIC_PREFIX. */
  prefix: string;
  mac: Pick<RecordMac, 'isProven'>;
  /** What happens to a record without a right MAC. */
  unprovenRecords: (typeof UNPROVEN_RECORDS)[number];
  confirm: ConfirmRecord;
  deadLetters: DeadLetters;
  confirmed: Pick<Counter, 'inc'>;
}

/** Counts the records without a right MAC that were processed all the same. */
export function createConfirmedRecords(registry: Registry): Counter {
  return new Counter({
    name: 'posthorn_unproven_records_confirmed_total',
    help: 'Records in Kafka without a right MAC that MongoDB confirmed, so that they were processed. Expected while records of a release without MACs are read; otherwise somebody else writes to the topics.',
    registers: [registry],
  });
}

/** Of records that wait for MongoDB, besides those that are counted once they are handled. */
const MAX_CONFIRMING_BYTES = 8_388_608;

const UNPROVEN = 'it has no right MAC of a key in ENCRYPTION_KEYS';
const UNCONFIRMED = `${UNPROVEN}, and MongoDB has no such attempt to make`;

/**
 * Returns the log with consumers that get no record of a stranger: proven ones, and those that MongoDB
 * confirms. Versions before MACs write none, and pass on one with a record that they copy to another
 * topic, where it is wrong. The others become dead letters.
 */
export function provenOnly(records: RecordLog, deps: ProvenOnlyDeps): RecordLog {
  return { ...records, consume: (options) => records.consume(checked(options, deps)) };
}

function checked(
  { handle, delayMs, mayRead = () => true, ...options }: ConsumeOptions,
  { prefix, mac, unprovenRecords, confirm, deadLetters, confirmed }: ProvenOnlyDeps,
): ConsumeOptions {
  // A record is handled again after an outage, and its value may have been cut meanwhile.
  const proven = new WeakSet<LogRecord>();
  const isProven = (record: LogRecord): boolean => {
    const isKnown = proven.has(record) || mac.isProven(record);
    if (isKnown) proven.add(record);
    return isKnown;
  };
  let confirmingBytes = 0;
  const confirmInPlace = async (record: LogRecord): Promise<boolean> => {
    const bytes = record.value.length;
    confirmingBytes += bytes;
    try {
      const content = await confirm(record);
      // In place: a copy would keep what the record was cut from in memory.
      if (content) Object.assign(record, content);
      return content !== null;
    } finally {
      confirmingBytes -= bytes;
    }
  };
  const refuse = (record: LogRecord, why: string): Promise<void> =>
    deadLetters.put(record, 'unproven_record', why);
  return {
    logFieldsIn: (record) => logFieldsIn(prefix, record),
    ...options,
    mayRead: () => confirmingBytes < MAX_CONFIRMING_BYTES && mayRead(),
    // The due time of a record that will be refused stops nothing behind it.
    ...(delayMs && {
      delayMs: (record: LogRecord, endOffset: number) =>
        unprovenRecords === 'refuse' && !isProven(record) ? 0 : delayMs(record, endOffset),
    }),
    async handle(record, isOurs) {
      if (isProven(record)) return handle(record, isOurs);
      if (unprovenRecords === 'refuse') return refuse(record, UNPROVEN);
      if (!(await confirmInPlace(record))) return refuse(record, UNCONFIRMED);
      confirmed.inc();
      return handle(record, isOurs);
    },
  };
}
