import { describe, expect, test } from '@jest/globals';
import { createSecretKey } from 'node:crypto';
import type { KeyRing } from '../security/vault.ts';
import type { OutgoingRecord } from './record-log.ts';
import { createRecordMac } from './record-mac.ts';

const keyOf = (id: string) => ({ id, key: createSecretKey(Buffer.alloc(32, id)) });
const ring: KeyRing = [keyOf('k1')];
const { sign, isProven } = createRecordMac(ring);

const record: OutgoingRecord = {
  topic: 'message-created',
  key: 'wh_1',
  value: Buffer.from('{"version":1}\n{"n":1}'),
  headers: { requestId: 'req_1', 'due-at': '5' },
};

function read({ headers = {}, ...rest }: OutgoingRecord) {
  return { ...rest, headers };
}

const signed = read(sign(record));

describe('the MAC of a record [security]', () => {
  test('proves what a process with the same key published', () => {
    expect(isProven(signed)).toBe(true);
    expect(signed.headers).toMatchObject({ requestId: 'req_1', 'due-at': '5' });
    expect(signed.headers.mac).toMatch(/^k1\.[\w-]{43}$/);
  });

  test('does not depend on the order of the headers', () => {
    const { requestId = '', 'due-at': dueAt = '', mac = '' } = signed.headers;
    expect(isProven({ ...signed, headers: { mac, 'due-at': dueAt, requestId } })).toBe(true);
  });

  test.each([
    ['its topic', { topic: 'retry-due' }],
    ['its key', { key: 'wh_2' }],
    ['its value', { value: Buffer.from('{"version":1}\n{"n":2}') }],
    ['a header', { headers: { ...signed.headers, 'due-at': '6' } }],
    ['one header less', { headers: { requestId: 'req_1', mac: signed.headers.mac ?? '' } }],
    ['one header more', { headers: { ...signed.headers, 'turn-at': '1' } }],
    ['its form', { headers: { ...signed.headers, mac: `${signed.headers.mac ?? ''}=` } }],
  ])('proves nothing after a change of %s', (_what, changed) => {
    expect(isProven({ ...signed, ...changed })).toBe(false);
  });

  test('is wrong when the same text lies elsewhere in the record', () => {
    const moved = { ...signed, key: `${signed.key}"`, topic: signed.topic.slice(0, -1) };
    expect(isProven(moved)).toBe(false);
  });

  test('of another key with the same id proves nothing', () => {
    const other = createRecordMac([{ id: 'k1', key: createSecretKey(Buffer.alloc(32, 'x')) }]);
    expect(other.isProven(signed)).toBe(false);
  });

  test('proves nothing when it is missing, or of a key that was removed', () => {
    expect(isProven(read(record))).toBe(false);
    expect(createRecordMac([keyOf('k2')]).isProven(signed)).toBe(false);
  });

  test('is of the first key, and verified with every key, so that keys can be rotated', () => {
    const next = createRecordMac([keyOf('k2'), keyOf('k1')]);
    expect(next.isProven(signed)).toBe(true);
    expect(read(next.sign(record)).headers.mac).toMatch(/^k2\./);
    const last = createRecordMac([keyOf('k1'), keyOf('k2')]);
    expect(last.isProven(read(next.sign(record)))).toBe(true);
  });

  test('replaces the one that a copied record had', () => {
    const released = sign({ ...signed, topic: 'retry-due' });
    expect(isProven(read(released))).toBe(true);
  });
});
