import { describe, expect, test } from '@jest/globals';
import type { KeyHolder } from '@posthorn/platform/mongo/messages/key-holders.ts';
import { bodyHashOf, keyUseOf } from './idempotency-key.ts';

const DAY_MS = 86_400_000;
const bodyHash = bodyHashOf(Buffer.from('{"n":1}'));
const holder: KeyHolder = {
  kind: 'holder',
  id: 'msg_1',
  ageMs: 0,
  bodyHash,
  storedBytes: 900,
  claimedFor: 'msg_1',
};

describe('a request with an idempotency key', () => {
  test('is the first one when no message holds the key', () => {
    expect(keyUseOf(null, bodyHash)).toEqual({ kind: 'first' });
  });

  test('is a repeat for 24 hours and not a millisecond longer', () => {
    // It is negative after an election, when the clock of the new primary is behind.
    const useAt = (ageMs: number) => keyUseOf({ ...holder, ageMs }, bodyHash).kind;
    expect([-1, 0, DAY_MS - 1, DAY_MS].map(useAt)).toEqual([
      ...['repeat', 'repeat', 'repeat', 'expired'],
    ]);
  });

  test('waits for a message that has claimed the key, and takes it away after two minutes', () => {
    const claim = { kind: 'claimed' as const, claimedFor: 'msg_1', ageMs: 120_000 };
    expect(keyUseOf({ ...claim, ageMs: 119_999 }, bodyHash)).toEqual({ kind: 'running' });
    expect(keyUseOf(claim, bodyHash)).toEqual({ kind: 'abandoned', claim });
  });

  test('reuses the key when its body differs by a single byte', () => {
    const other = bodyHashOf(Buffer.from('{"n":1} '));
    expect(keyUseOf(holder, other)).toEqual({ kind: 'reused' });
    const expired = { ...holder, ageMs: DAY_MS };
    expect(keyUseOf(expired, other)).toEqual({ kind: 'expired', holder: expired });
  });
});
