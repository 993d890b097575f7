import { describe, expect, test } from '@jest/globals';
import { bodyHashOf, keyUseOf } from './idempotency-key.ts';

const CREATED_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;
const bodyHash = bodyHashOf(Buffer.from('{"n":1}'));
const holder = {
  id: 'msg_1',
  createdAtMs: CREATED_MS,
  bodyHash,
  storedBytes: 900,
  claimedFor: 'msg_1',
};

describe('a request with an idempotency key', () => {
  test('is the first one when no message holds the key', () => {
    expect(keyUseOf(null, bodyHash, CREATED_MS)).toEqual({ kind: 'first' });
  });

  test('is a repeat for 24 hours and not a millisecond longer', () => {
    const repeat = { kind: 'repeat', holder };
    expect(keyUseOf(holder, bodyHash, CREATED_MS)).toEqual(repeat);
    expect(keyUseOf(holder, bodyHash, CREATED_MS + DAY_MS - 1)).toEqual(repeat);
    expect(keyUseOf(holder, bodyHash, CREATED_MS + DAY_MS)).toEqual({ kind: 'expired', holder });
  });

  test('waits for a message that has claimed the key, and takes it away after two minutes', () => {
    const claim = { claimedFor: 'msg_1', claimedAtMs: CREATED_MS };
    expect(keyUseOf(claim, bodyHash, CREATED_MS + 119_999)).toEqual({ kind: 'running' });
    expect(keyUseOf(claim, bodyHash, CREATED_MS + 120_000)).toEqual({ kind: 'abandoned', claim });
  });

  test('reuses the key when its body differs by a single byte', () => {
    const other = bodyHashOf(Buffer.from('{"n":1} '));
    expect(keyUseOf(holder, other, CREATED_MS)).toEqual({ kind: 'reused' });
    expect(keyUseOf(holder, other, CREATED_MS + DAY_MS)).toEqual({ kind: 'expired', holder });
  });
});
