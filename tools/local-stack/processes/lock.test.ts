import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { takeLock } from './lock.ts';

describe('the lock of a stack folder', () => {
  test('is refused while its holder lives, naming pid and command', () => {
    const folder = scratchFolder();
    takeLock(folder, 'npm start');
    expect(() => takeLock(folder, 'npm run stack')).toThrow(
      new RegExp(`npm start, pid ${process.pid}, since \\d{4}-`),
    );
  });

  test('is free again after its release', () => {
    const folder = scratchFolder();
    takeLock(folder, 'npm start').release();
    takeLock(folder, 'npm start').release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['of a process that is gone', JSON.stringify({ pid: 2 ** 22 + 1, identity: 'gone' })],
    ['of a pid that another process has now', JSON.stringify({ pid: process.pid, identity: 'x' })],
    ['torn by a crash', '{"pid": 1'],
    ['left empty', ''],
  ])('is taken over when it is one %s', (_, text) => {
    const folder = scratchFolder();
    writeFileSync(join(folder, 'lock'), text);
    takeLock(folder, 'npm start').release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
