import { allocatorEnv, encryptionEnv } from './services.ts';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { keyRingSchema } from '@posthorn/platform/security/vault.ts';
import { createEncryptionKeys } from '../../../deploy/setup/create-encryption-keys.ts';

describe('the settings of the allocator', () => {
  test('load jemalloc where it is installed', () => {
    expect(allocatorEnv(() => true)).toMatchObject({ LD_PRELOAD: 'libjemalloc.so.2' });
  });

  test('limit the arenas of glibc where jemalloc is not installed', () => {
    expect(allocatorEnv(() => false)).toEqual({ MALLOC_ARENA_MAX: '2' });
  });
});

describe('the encryption keys of a local stack', () => {
  let folder: string;

  beforeEach(() => {
    folder = scratchFolder();
  });

  test('are created once, together with the folder, and only their owner can read them', () => {
    const STACK_DIR = join(folder, 'new');
    const path = join(STACK_DIR, 'encryption-keys');
    expect(encryptionEnv({ STACK_DIR })).toEqual({ ENCRYPTION_KEYS_FILE: path });
    const text = readFileSync(path, 'utf8');
    expect(keyRingSchema.parse(text)).toHaveLength(1);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(encryptionEnv({ STACK_DIR })).toEqual({ ENCRYPTION_KEYS_FILE: path });
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(STACK_DIR)).toEqual(['encryption-keys']);
  });

  test('differ between folders', () => {
    const [one, other] = [join(folder, 'one'), join(folder, 'other')];
    createEncryptionKeys(one);
    createEncryptionKeys(other);
    expect(readFileSync(one, 'utf8')).not.toBe(readFileSync(other, 'utf8'));
  });

  test.each([{ ENCRYPTION_KEYS: 'k1:mine' }, { ENCRYPTION_KEYS_FILE: '/mine' }])(
    'are not created when the user has set some: %j',
    (own) => {
      expect(encryptionEnv({ STACK_DIR: folder, ...own })).toEqual({});
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});
