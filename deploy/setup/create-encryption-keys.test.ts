import { linkSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { scratchFolder } from '../../test/support/process/scratch-folder.ts';
import { createEncryptionKeys } from './create-encryption-keys.ts';

const KEY = /^k[0-9a-f]{8}:[A-Za-z0-9+/]{43}=\n$/;

let folder: string;
let file: string;

beforeEach(() => {
  folder = scratchFolder();
  file = join(folder, 'below', 'encryption-keys');
});

const written = () => readFileSync(file, 'utf8');
const files = () => readdirSync(join(folder, 'below'));

/** Fails like a file system without hard links. */
const noLink = () => {
  throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
};

describe('the file of encryption keys', () => {
  it.each([
    ['with', linkSync],
    ['without', noLink],
  ])('is created once, readable by its owner only, %s hard links', (_what, link) => {
    createEncryptionKeys(file, link);
    const first = written();
    expect(first).toMatch(KEY);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    createEncryptionKeys(file, link);
    expect([written(), files()]).toEqual([first, ['encryption-keys']]);
  });

  it.each([
    ['with', linkSync],
    ['without', noLink],
  ])(
    'has the key of the first of two processes with the same pid, %s hard links',
    (_what, link) => {
      let first = '';
      createEncryptionKeys(file, (from, to) => {
        createEncryptionKeys(file, link);
        first = written();
        link(from, to);
      });
      expect(first).toMatch(KEY);
      expect([written(), files()]).toEqual([first, ['encryption-keys']]);
    },
  );

  it('throws if the file cannot be created with or without a link', () => {
    const lost = () => {
      rmSync(join(folder, 'below'), { recursive: true });
      noLink();
    };
    expect(() => {
      createEncryptionKeys(file, lost);
    }).toThrow('ENOENT');
  });
});
