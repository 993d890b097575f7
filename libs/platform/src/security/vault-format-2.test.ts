import { createSecretKey, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { createFirstFormatVault } from '../../../../test/support/samples/first-format-vault.ts';
import { createVault, SealedValueError, type Binding } from './vault.ts';

const KEY = { id: 'k1', key: createSecretKey(randomBytes(32)) };
const vault = createVault([KEY]);
const BINDING: Binding = {
  companyId: 'comp_1',
  ownerId: 'wh_1',
  field: 'secret',
  target: 'https://example.com',
};

/** Opens by the text of the decision alone. */
function openByHand(sealed: string, { companyId, ownerId, field, target }: Binding): string {
  const [version = '', keyId = '', ...texts] = sealed.split('.');
  const [iv, ciphertext, tag] = texts.map((text) => Buffer.from(text, 'base64url'));
  if (!iv || !ciphertext || !tag) throw new Error('not sealed');
  const info = JSON.stringify(['posthorn sealed values v2', companyId, ownerId]);
  const key = Buffer.from(hkdfSync('sha256', KEY.key, Buffer.alloc(0), info, 32));
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 });
  const place = [version, keyId, companyId, ownerId, field, target ?? null];
  decipher.setAAD(Buffer.from(JSON.stringify(place))).setAuthTag(tag);
  return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString();
}

describe('a sealed value', () => {
  it('is encrypted with the key of its document, and authenticated with its place', () => {
    const sealed = vault.seal('hush hush', BINDING);
    expect(sealed).toMatch(/^v2\.k1\.[\w-]{16}\.[\w-]{12}\.[\w-]{22}$/);
    expect(openByHand(sealed, BINDING)).toBe('hush hush');
    expect(vault.open(sealed, BINDING)).toBe('hush hush');
  });

  it('has no target where its owner has none', () => {
    const { companyId, ownerId, field } = BINDING;
    const without = { companyId, ownerId, field };
    const sealed = vault.seal('hush', without);
    expect(openByHand(sealed, without)).toBe('hush');
    expect(() => vault.open(sealed, BINDING)).toThrow(SealedValueError);
  });

  it.each([
    { companyId: 'comp_2' },
    { ownerId: 'wh_2' },
    { field: 'authMethod' },
    { target: 'https://example.org' },
  ])('does not open where it does not belong: %j', (elsewhere) => {
    const sealed = vault.seal('hush', BINDING);
    const open = (): string => vault.open(sealed, { ...BINDING, ...elsewhere });
    expect(open).toThrow(/is sealed with key k1, and was changed or moved$/);
  });

  it('does not open when its text is changed, or was never sealed', () => {
    const sealed = vault.seal('hush', BINDING);
    const changed = Array.from(
      sealed,
      (each, at) => sealed.slice(0, at) + (each === 'A' ? 'B' : 'A') + sealed.slice(at + 1),
    );
    for (const text of [...changed, sealed.slice(0, -1), `v3${sealed.slice(2)}`]) {
      expect(() => vault.open(text, BINDING)).toThrow(SealedValueError);
    }
  });
});

it('opens what an earlier version has sealed in the first format', () => {
  const sealed = createFirstFormatVault(KEY).seal('hush', BINDING);
  expect(sealed).toMatch(/^v1\./);
  expect([vault.open(sealed, BINDING), vault.keyIdOf(sealed)]).toEqual(['hush', 'k1']);
  const elsewhere = { ...BINDING, field: 'authMethod' };
  expect(() => vault.open(sealed, elsewhere)).toThrow(SealedValueError);
});
