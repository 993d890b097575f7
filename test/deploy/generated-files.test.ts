import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { generatedFiles } from '../../k8s/write-generated.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('what is made from k8s/base', () => {
  it.each([...generatedFiles()])('%s is up to date (node k8s/write-generated.ts)', (path, text) => {
    expect(readFileSync(join(ROOT, path), 'utf8')).toBe(text);
  });
});
