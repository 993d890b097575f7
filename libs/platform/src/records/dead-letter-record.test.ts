import { describe, expect, test } from '@jest/globals';
import { cutDeadLetter, readDeadLetter, toDeadLetter } from './dead-letter-record.ts';
import type { LogRecord, OutgoingRecord } from '../kafka/record-log.ts';

const record: LogRecord = {
  topic: 'retry-due',
  partition: 3,
  offset: 42,
  isInherited: false,
  ownedSinceMs: 0,
  timestampMs: 0,
  key: 'wh_1',
  value: Buffer.from([0xff, 0x0a]),
  headers: { requestId: 'request-1', 'due-at': '5' },
};

function stored({ key, value, headers = {} }: OutgoingRecord) {
  return { topic: 'dead', partition: 1, offset: 7, atMs: 9, key, value, headers };
}

describe('a dead letter that is read', () => {
  test('contains the original record without the added headers', () => {
    const letter = toDeadLetter('dead', record, 'unreadable_record', 'not JSON');
    const { key, value, headers } = record;
    expect(readDeadLetter(stored(letter))).toEqual({
      id: '1:7',
      atMs: 9,
      reason: 'unreadable_record',
      detail: 'not JSON',
      source: { topic: 'retry-due', place: '3:42' },
      record: { key, value, headers },
      cutFromBytes: null,
    });
  });

  test('of a record that was cut has its beginning and its original length', () => {
    const large = { ...record, key: 'k'.repeat(5_000), value: Buffer.alloc(1_000_000, 7) };
    const letter = cutDeadLetter('dead', large, 'unreadable_record', 'not JSON');
    const read = readDeadLetter(stored(letter));
    expect(read).toMatchObject({ cutFromBytes: 1_000_000, source: { place: '3:42' } });
    expect(read.record.value).toEqual(Buffer.alloc(65_536, 7));
    expect(read.record.key).toHaveLength(256);
    expect(read.record.headers).toEqual({});
  });

  test('does not confuse its own headers with headers of the record that have the same names', () => {
    const odd = {
      ...record,
      headers: { ...record.headers, 'cut-from-bytes': '9', reason: 'mine' },
    };
    const read = readDeadLetter(stored(toDeadLetter('dead', odd, 'message_missing', '')));
    expect(read).toMatchObject({ cutFromBytes: null, reason: 'message_missing' });
    expect(read.record.headers).toEqual(record.headers);
  });

  test('that another program wrote has an empty reason and source', () => {
    const foreign = stored({ topic: 'dead', key: '', value: Buffer.alloc(0) });
    expect(readDeadLetter(foreign)).toMatchObject({
      reason: '',
      source: { topic: '', place: '' },
    });
  });
});
