import type { DeadLetters } from '../dead-letters/dead-letters.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { RecordMac } from '../kafka/record-mac.ts';
import type { ConfirmRecord } from './confirm-record.ts';

export const UNPROVEN_RECORDS = ['confirm', 'refuse'] as const;

export interface ProvenOnlyDeps {
  mac: Pick<RecordMac, 'isProven'>;
  /** What happens to a record without a right MAC. */
  unprovenRecords: (typeof UNPROVEN_RECORDS)[number];
  confirm: ConfirmRecord;
  deadLetters: DeadLetters;
}

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
  { handle, ...options }: ConsumeOptions,
  { mac, unprovenRecords, confirm, deadLetters }: ProvenOnlyDeps,
): ConsumeOptions {
  // A record is handled again after an outage, and its value may have been cut meanwhile.
  const proven = new WeakSet<LogRecord>();
  const refuse = (record: LogRecord, why: string): Promise<void> =>
    deadLetters.put(record, 'unproven_record', why);
  return {
    ...options,
    async handle(record) {
      if (proven.has(record) || mac.isProven(record)) {
        proven.add(record);
        return handle(record);
      }
      if (unprovenRecords === 'refuse') return refuse(record, UNPROVEN);
      const confirmed = await confirm(record);
      return confirmed ? handle(confirmed) : refuse(record, UNCONFIRMED);
    },
  };
}
