import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { cacheDir, cachedFolder } from './cache.ts';

describe('a cached folder', () => {
  beforeEach(() => {
    process.env.POSTHORN_CACHE_DIR = scratchFolder();
  });

  test('is filled once', async () => {
    let fills = 0;
    const fill = (folder: string) => {
      fills += 1;
      writeFileSync(join(folder, 'jar'), '');
      return Promise.resolve();
    };
    const folder = await cachedFolder('kafka', fill);
    await cachedFolder('kafka', fill);
    expect(fills).toBe(1);
    expect(existsSync(join(folder, 'jar'))).toBe(true);
  });

  test('does not exist after a failed download', async () => {
    const failing = cachedFolder('kafka', () => Promise.reject(new Error('no network')));
    await expect(failing).rejects.toThrow('no network');
    expect(readdirSync(cacheDir())).toEqual([]);
  });

  test('is filled by only one of two downloads that run at the same time', async () => {
    const fill = (folder: string) => {
      writeFileSync(join(folder, 'jar'), '');
      return Promise.resolve();
    };
    const [a, b] = await Promise.all([cachedFolder('kafka', fill), cachedFolder('kafka', fill)]);
    expect(a).toBe(b);
    expect(readdirSync(cacheDir())).toEqual(['kafka']);
  });
});
