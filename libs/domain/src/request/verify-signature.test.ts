import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { isSignedWith, secretFromBytes } from './signature.ts';

const secret = secretFromBytes(Buffer.alloc(32, 1));
const payload = '{"n":1}';
const signed = {
  messageId: 'msg_1',
  timestampSeconds: 1_700_000_000,
  payload: Buffer.from(payload),
};
const header = new Webhook(secret).sign('msg_1', new Date(1_700_000_000_000), payload);

describe('a signature', () => {
  test('of the reference implementation is right, alone or beside another', () => {
    expect(isSignedWith(secret, header, signed)).toBe(true);
    expect(isSignedWith(secret, `v1,AAAA ${header}`, signed)).toBe(true);
  });

  test.each([
    ['another secret', secretFromBytes(Buffer.alloc(32, 2)), signed],
    ['another id', secret, { ...signed, messageId: 'msg_2' }],
    ['another time', secret, { ...signed, timestampSeconds: 1_700_000_001 }],
    ['another payload', secret, { ...signed, payload: Buffer.from('{"n":2}') }],
  ])('is wrong for %s', (_which, key, content) => {
    expect(isSignedWith(key, header, content)).toBe(false);
  });

  test('is wrong when it is missing or cut', () => {
    expect(isSignedWith(secret, '', signed)).toBe(false);
    expect(isSignedWith(secret, header.slice(0, -1), signed)).toBe(false);
  });
});
