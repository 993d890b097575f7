import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parseConfig } from '../service/config.ts';
import { StartupError } from '../service/errors.ts';
import { settings } from '../service/settings.ts';
import { type Binding, createVault, type EncryptionKey, SealedValueError } from './vault.ts';

describe('vault', () => {
  const newKey = (id: string): EncryptionKey => ({ id, key: createSecretKey(randomBytes(32)) });

  const OLD = newKey('old');
  const NEW = newKey('new');
  const vault = createVault([NEW, OLD]);
  const BINDING: Binding = { companyId: 'comp_1', ownerId: 'wh_1', field: 'secret' };

  /** Opens by the text of the decision alone. */
  function openByHand(sealed: string, { companyId, ownerId, field, target }: Binding): string {
    const [version = '', keyId = '', ...texts] = sealed.split('.');
    const [iv, ciphertext, tag] = texts.map((text) => Buffer.from(text, 'base64url'));
    if (!iv || !ciphertext || !tag) throw new Error('not sealed');
    const info = JSON.stringify(['posthorn sealed values v2', companyId, ownerId]);
    const key = Buffer.from(hkdfSync('sha256', NEW.key, Buffer.alloc(0), info, 32));
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 });
    const place = [version, keyId, companyId, ownerId, field, target ?? null];
    decipher.setAAD(Buffer.from(JSON.stringify(place))).setAuthTag(tag);
    return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString();
  }

  function refusalOf(open: () => unknown): SealedValueError {
    try {
      open();
    } catch (error) {
      if (error instanceof SealedValueError) return error;
      throw error;
    }
    throw new Error('the value was opened');
  }

  describe('a sealed value [security]', () => {
    it('opens to the text that was sealed, for any text and binding', () => {
      const anyText = fc.string({ unit: 'grapheme', maxLength: 5_000 });
      fc.assert(
        fc.property(anyText, anyText, anyText, anyText, (plain, companyId, ownerId, field) => {
          const binding = { companyId, ownerId, field };
          expect(vault.open(vault.seal(plain, binding), binding)).toBe(plain);
        }),
      );
    });

    it('has the documented format and shows nothing of its text', () => {
      const sealed = vault.seal('hush hush', BINDING);
      expect(sealed).toMatch(/^v2\.new\.[\w-]{16}\.[\w-]{12}\.[\w-]{22}$/);
      expect(Buffer.from(sealed).includes('hush')).toBe(false);
    });

    it.each([BINDING, { ...BINDING, target: 'https://example.com' }])(
      'is encrypted with the key of its document, and authenticated with its place: %j',
      (binding) => {
        expect(openByHand(vault.seal('hush hush', binding), binding)).toBe('hush hush');
      },
    );

    it('is different each time', () => {
      const sealed = Array.from({ length: 100 }, () => vault.seal('same', BINDING));
      expect(new Set(sealed.map((text) => text.split('.')[2])).size).toBe(100);
      expect(new Set(sealed.map((text) => text.split('.')[3])).size).toBe(100);
    });

    it('does not open when any character is changed', () => {
      const sealed = vault.seal('hush hush', BINDING);
      const character = fc.constantFrom(
        'a',
        'b',
        'X',
        'Y',
        '0',
        '1',
        '-',
        '_',
        '.',
        '=',
        '+',
        '/',
        ' ',
        '\n',
      );
      fc.assert(
        fc.property(fc.nat(sealed.length - 1), character, (at, other) => {
          fc.pre(sealed[at] !== other);
          const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
          expect(refusalOf(() => vault.open(changed, BINDING)).message).not.toContain('hush');
        }),
        { numRuns: 500 },
      );
    });

    it('does not open when it is cut anywhere, or extended', () => {
      const sealed = vault.seal('hush hush', BINDING);
      for (let length = 0; length < sealed.length; length += 1) {
        refusalOf(() => vault.open(sealed.slice(0, length), BINDING));
      }
      for (const more of ['A', '=', '.', '\n', sealed]) {
        refusalOf(() => vault.open(sealed + more, BINDING));
      }
    });

    it.each([0, 1, 2, 3, 4])('does not open with part %i of another value', (part) => {
      const other = createVault([OLD]).seal('another', BINDING).split('.');
      const parts = vault.seal('hush hush', BINDING).split('.');
      parts[part] = part === 0 ? 'v1' : (other[part] ?? '');
      refusalOf(() => vault.open(parts.join('.'), BINDING));
    });

    it.each([
      { companyId: 'comp_2' },
      { ownerId: 'wh_2' },
      { field: 'previousSecret' },
      { target: 'https://example.com' },
    ])('does not open where it does not belong: %j', (elsewhere) => {
      const sealed = vault.seal('hush', BINDING);
      const refusal = refusalOf(() => vault.open(sealed, { ...BINDING, ...elsewhere }));
      expect(refusal.message).toMatch(/is sealed with key new, and was changed or moved$/);
      expect(refusal.keyId).toBe('new');
    });

    it('does not open for another binding whose names join to the same text', () => {
      const sealed = vault.seal('hush', { companyId: 'a","b', ownerId: 'c', field: 'd' });
      refusalOf(() => vault.open(sealed, { companyId: 'a', ownerId: 'b","c', field: 'd' }));
    });

    it('is reported as not sealed when it never was', () => {
      for (const text of ['', 'whsec_hush', 'v1.new.hush', 'v1.new...']) {
        const refusal = refusalOf(() => vault.open(text, BINDING));
        expect(refusal).toMatchObject({
          message: 'secret of wh_1 is not a sealed value',
          keyId: null,
        });
        expect(refusalOf(() => vault.keyIdOf(text)).message).toBe('not a sealed value');
      }
    });
  });

  describe('a ring of keys [security]', () => {
    it('seals with its first key and opens with all of them', () => {
      const before = createVault([OLD]).seal('hush', BINDING);
      expect(vault.open(before, BINDING)).toBe('hush');
      expect(vault.keyIdOf(before)).toBe('old');
      expect(vault.keyIdOf(vault.seal('hush', BINDING))).toBe(vault.currentKeyId);
      expect(vault.currentKeyId).toBe('new');
    });

    it('names the missing key in its error', () => {
      const sealed = createVault([OLD]).seal('hush', BINDING);
      const refusal = refusalOf(() => createVault([NEW]).open(sealed, BINDING));
      expect(refusal.message).toBe(
        'secret of wh_1 is sealed with key old, which is not in ENCRYPTION_KEYS',
      );
      expect(refusal.keyId).toBe('old');
    });

    it('does not open what another key of the same id has sealed', () => {
      const sealed = createVault([newKey('new')]).seal('hush', BINDING);
      expect(refusalOf(() => vault.open(sealed, BINDING)).message).toContain('changed or moved');
    });
  });
});

describe('vault keys', () => {
  const schema = z.object(settings.encryption);
  const read = (text: string) => parseConfig('gateway', schema, { ENCRYPTION_KEYS: text });
  const newKey = (): string => randomBytes(32).toString('base64');

  describe('ENCRYPTION_KEYS [security]', () => {
    it('is a list of keys in the order of the text', () => {
      const [first, second] = [newKey(), newKey()];
      const { ENCRYPTION_KEYS: keys } = read(`2026-08:${first}, old_1:${second}`);
      expect(keys.map(({ id }) => id)).toEqual(['2026-08', 'old_1']);
      expect(keys.map(({ key }) => key.export().toString('base64'))).toEqual([first, second]);
    });

    it('shows no key when it is logged by mistake', () => {
      const key = newKey();
      expect(JSON.stringify(read(`k1:${key}`))).not.toContain(key.slice(0, 10));
    });

    it.each([
      ['no id', newKey()],
      ['an empty id', `:${newKey()}`],
      ['an id of other characters', `k.1:${newKey()}`],
      ['an id that is too long', `${'k'.repeat(33)}:${newKey()}`],
      ['a key of 16 bytes', `k1:${randomBytes(16).toString('base64')}`],
      ['a key of 33 bytes', `k1:${randomBytes(33).toString('base64')}`],
      ['a key in hex', `k1:${randomBytes(32).toString('hex')}`],
      ['an empty entry', `k1:${newKey()},`],
      ['two keys of one id', `k1:${newKey()},k1:${newKey()}`],
    ])('is refused, and not shown, with %s', (_what, text) => {
      const refusal = refusalOf(text);
      expect(refusal).toContain('  ENCRYPTION_KEYS: must ');
      for (const entry of text.split(',')) {
        const key = entry.slice(entry.indexOf(':') + 1);
        if (key !== '') expect(refusal).not.toContain(key);
      }
    });

    it('is required', () => {
      expect(refusalOf('')).toContain('ENCRYPTION_KEYS: is required and not set');
    });
  });

  function refusalOf(text: string): string {
    try {
      read(text);
    } catch (error) {
      if (error instanceof StartupError) return error.message;
      throw error;
    }
    throw new Error('the keys were taken');
  }
});
