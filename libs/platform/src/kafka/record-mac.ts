import { MAC_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deriveKey, type KeyRing } from '../security/vault.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from './record-log.ts';

export interface RecordMac {
  /** Returns the record with its MAC, in place of one that it may have had. */
  sign: (record: OutgoingRecord) => OutgoingRecord;
  /** True when a process with one of the keys published the record, as it is, to its topic. */
  isProven: (record: SignedParts) => boolean;
}

type SignedParts = Pick<LogRecord, 'topic' | 'key' | 'value' | 'headers'>;

/** `<keyId>.<HMAC-SHA256 in base64url>` */
const FORM = /^(?<keyId>[\w-]{1,32})\.(?<digest>[\w-]{43})$/;
/** Names the use of the derived key (RFC 5869, `info`); another use of the same key has another name. */
const KEY_USE = 'posthorn record mac v1';

/**
 * Message authentication codes of records: whoever can write to Kafka, and has no key, cannot have a
 * request signed with the secret of a webhook (docs/decisions/0025-record-macs.md). HMAC-SHA256 (RFC 2104)
 * over topic, key, headers and value, with a key derived from each of ENCRYPTION_KEYS by HKDF (RFC
 * 5869). The first one signs, every one verifies, so that keys rotate as those of secrets do.
 */
export function createRecordMac(keyRing: KeyRing): RecordMac {
  const macKeys = new Map(keyRing.map(({ id, key }) => [id, deriveKey(key, KEY_USE)]));
  const currentId = keyRing[0].id;
  const current = deriveKey(keyRing[0].key, KEY_USE);
  return {
    sign(record) {
      const headers = record.headers ?? {};
      const digest = digestOf(current, { ...record, headers }).toString('base64url');
      return { ...record, headers: { ...headers, [MAC_HEADER]: `${currentId}.${digest}` } };
    },
    isProven(record) {
      const { keyId = '', digest = '' } = FORM.exec(record.headers[MAC_HEADER] ?? '')?.groups ?? {};
      const key = macKeys.get(keyId);
      return key !== undefined && timingSafeEqual(digestOf(key, record), bytesOf(digest));
    },
  };
}

function bytesOf(digest: string): Buffer {
  return Buffer.from(digest, 'base64url');
}

/** JSON separates the fields: no text of one can be read as part of another. */
function digestOf(key: KeyObject, { topic, key: recordKey, headers, value }: SignedParts): Buffer {
  const sorted = Object.entries(headers)
    .filter(([name]) => name !== MAC_HEADER)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const begin = JSON.stringify([topic, recordKey, sorted]);
  return createHmac('sha256', key).update(`${begin}\n`).update(value).digest();
}

/** Returns the log with a MAC on every record that it publishes. */
export function signRecords(records: RecordLog, mac: Pick<RecordMac, 'sign'>): RecordLog {
  return { ...records, publish: (outgoing) => records.publish(outgoing.map(mac.sign)) };
}
