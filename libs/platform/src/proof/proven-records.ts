import type { DeadLetters } from '../dead-letters/dead-letters.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { Proof, RecordMac } from '../kafka/record-mac.ts';
import type { ConfirmRecord } from './confirm-record.ts';

export const UNSIGNED_RECORDS = ['confirm', 'refuse'] as const;

export interface ProvenOnlyDeps {
  mac: Pick<RecordMac, 'proofOf'>;
  /** What happens to a record without a MAC. One with a wrong MAC is always refused. */
  unsignedRecords: (typeof UNSIGNED_RECORDS)[number];
  confirm: ConfirmRecord;
  deadLetters: DeadLetters;
}

const FORGED = 'its MAC is wrong';
const UNSIGNED = 'it has no MAC of a key in ENCRYPTION_KEYS';
const UNCONFIRMED = `${UNSIGNED}, and MongoDB has no such attempt to make`;

/**
 * Returns the log with consumers that get no record of a stranger: proven ones, and unsigned ones that
 * MongoDB confirms, as versions before MACs wrote them. The others become dead letters.
 */
export function provenOnly(records: RecordLog, deps: ProvenOnlyDeps): RecordLog {
  return { ...records, consume: (options) => records.consume(checked(options, deps)) };
}

function checked(
  { handle, delayMs, ...options }: ConsumeOptions,
  { mac, unsignedRecords, confirm, deadLetters }: ProvenOnlyDeps,
): ConsumeOptions {
  // Asked for several times while a record is delayed; and its value may be cut after the first time.
  const known = new WeakMap<LogRecord, Proof>();
  const proofOf = (record: LogRecord): Proof => {
    const proof = known.get(record) ?? mac.proofOf(record);
    known.set(record, proof);
    return proof;
  };
  const refuse = (record: LogRecord, why: string): Promise<void> =>
    deadLetters.put(record, 'unproven_record', why);
  return {
    ...options,
    // What follows in the partition does not wait for a forged time.
    ...(delayMs && {
      delayMs: (record: LogRecord, endOffset: number) =>
        proofOf(record) === 'forged' ? 0 : delayMs(record, endOffset),
    }),
    async handle(record) {
      const proof = proofOf(record);
      if (proof === 'proven') return handle(record);
      if (proof === 'forged') return refuse(record, FORGED);
      if (unsignedRecords === 'refuse') return refuse(record, UNSIGNED);
      const confirmed = await confirm(record);
      return confirmed ? handle(confirmed) : refuse(record, UNCONFIRMED);
    },
  };
}
