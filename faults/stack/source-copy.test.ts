import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { changeSource } from './source-copy.ts';
import { BROKEN_BUILDS } from '../rounds/faulty-builds/broken-builds.ts';
import { HANGS } from '../rounds/faulty-builds/hung-attempts.ts';

const ROOT = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'posthorn-change-'));

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('a change of the sources', () => {
  it('replaces one place', () => {
    writeFileSync(join(folder, 'a.ts'), 'one two three');
    changeSource(folder, { file: 'a.ts', find: 'two', replace: '$& 2' });
    expect(readFileSync(join(folder, 'a.ts'), 'utf8')).toBe('one $& 2 three');
  });

  it('fails where the text is missing or there twice', () => {
    writeFileSync(join(folder, 'b.ts'), 'two two');
    const change = { find: 'two', replace: '' };
    expect(() => {
      changeSource(folder, { file: 'b.ts', ...change });
    }).toThrow('b.ts has 2 places');
    expect(() => {
      changeSource(folder, { file: 'no.ts', ...change });
    }).toThrow('no.ts has 0 places');
  });
});

describe('the builds with faults', () => {
  const broken = BROKEN_BUILDS.flatMap(({ changes }) => changes);
  const hanging = HANGS.map(({ change }) => change);

  it.each([...broken, ...hanging])('change text that $file has once', ({ file, find, replace }) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    expect(text.split(find)).toHaveLength(2);
    expect(replace).not.toBe(find);
  });
});
