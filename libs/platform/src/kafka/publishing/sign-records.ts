import type { RecordLog } from '../record-log.ts';
import type { RecordMac } from './record-mac.ts';

/** Returns the log with a MAC on every record that it publishes. */
export function signRecords(records: RecordLog, mac: Pick<RecordMac, 'sign'>): RecordLog {
  return { ...records, publish: (outgoing) => records.publish(outgoing.map(mac.sign)) };
}
