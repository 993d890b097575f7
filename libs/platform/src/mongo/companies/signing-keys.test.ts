import { describe, expect, it } from '@jest/globals';
import { sampleSigningKey } from '../../../../../test/support/samples/sample-signing-key.ts';
import { randomKey } from '../../../../../test/support/samples/sample-webhook.ts';
import { createVault } from '../../security/vault.ts';
import { openKeysAt, openSigningKey, sealSigningKey } from './signing-keys.ts';

const vault = createVault([randomKey('k1')]);
const first = sampleSigningKey(1);
const second = sampleSigningKey(2, { previousUntilMs: 9_000 });
const stored = (key = first) => sealSigningKey(vault, key);

describe('a stored signing key [security]', () => {
  it('opens to the key that was sealed, and shows neither half of it', () => {
    const document = stored();
    expect(openSigningKey(vault, document)).toEqual(first);
    const text = JSON.stringify(document);
    for (const half of [first.privateKey, first.publicKey]) expect(text).not.toContain(half);
  });

  it.each([
    ['another company', { companyId: 'comp_b' }],
    ['another key', { _id: second.id }],
    ['another number', { number: 3 }],
    ['the values of another key', { sealed: stored(second).sealed }],
    ['no sealed value', { sealed: undefined as unknown as string }],
  ])('does not open with %s', (_what, changes) => {
    expect(() => openSigningKey(vault, { ...stored(), ...changes })).toThrow(first.id.slice(0, 5));
  });
});

describe('the keys that sign [security]', () => {
  const newestFirst = [stored(second), stored(first)];

  it('are the newest and, during its grace, the one before', () => {
    const previous = { key: first, expiresAtMs: 9_000 };
    expect(openKeysAt(vault, newestFirst, 8_999)).toEqual({ current: second, previous });
    expect(openKeysAt(vault, newestFirst, 9_000)).toEqual({ current: second, previous: null });
    expect(openKeysAt(vault, [], 0)).toBeNull();
  });

  it('do not include one before that was removed early', () => {
    expect(openKeysAt(vault, [stored(second)], 0)).toEqual({ current: second, previous: null });
  });

  it('open after a rotation without grace when the one before does not open', () => {
    const lost = sealSigningKey(createVault([randomKey('lost')]), first);
    expect(() => openKeysAt(vault, [stored(second), lost], 8_999)).toThrow(
      'not in ENCRYPTION_KEYS',
    );
    const urgent = sampleSigningKey(2, { previousUntilMs: 0 });
    expect(openKeysAt(vault, [stored(urgent), lost], 1)).toEqual({
      current: urgent,
      previous: null,
    });
  });
});
