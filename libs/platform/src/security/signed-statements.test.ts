import { describe, expect, test } from '@jest/globals';
import { newEncryptionKey } from '../../../../deploy/setup/create-encryption-keys.ts';
import { createSignedStatements } from './signed-statements.ts';
import { keyRingSchema } from './vault.ts';

const [first, second] = [newEncryptionKey(), newEncryptionKey().replace(/^[^:]+/, 'other')];
const signer = (keys: string, use = 'test') =>
  createSignedStatements(keyRingSchema.parse(keys), use);

describe('a signed statement [security]', () => {
  const signed = signer(first).sign('who: ä');

  test('is read by whoever has the key, also after a rotation', () => {
    expect(signer(first).read(signed)).toBe('who: ä');
    expect(signer(`${second},${first}`).read(signed)).toBe('who: ä');
    expect(signer(`${second},${first}`).sign('x')).toMatch(/^other\./);
  });

  test('is refused without the key, and for another use', () => {
    expect(signer(second).read(signed)).toBeNull();
    expect(signer(first, 'other use').read(signed)).toBeNull();
  });

  test('is refused when any part of it was changed', () => {
    const parts = signed.split('.');
    const changed = parts.map((_, at) =>
      parts.map((part, index) => (index === at ? flipped(part) : part)).join('.'),
    );
    const cut = [signed.slice(0, -1), parts.slice(0, 2).join('.'), '', '.', '..', `${signed}a`];
    for (const text of [...changed, ...cut]) expect(signer(first).read(text)).toBeNull();
  });
});

function flipped(text: string): string {
  return (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
}
