import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { parseConfig } from '../service/settings/config.ts';
import { StartupError } from '../service/errors.ts';
import { settings } from '../service/settings/settings.ts';

const schema = z.object(settings.encryption);
const read = (text: string) => parseConfig('gateway', schema, { ENCRYPTION_KEYS: text });
const newKey = (): string => randomBytes(32).toString('base64');

describe('ENCRYPTION_KEYS', () => {
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
