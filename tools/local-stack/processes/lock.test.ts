import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { takeLock } from './lock.ts';

describe('the lock of a stack folder', () => {
  test('is refused while its holder runs, with pid and command in the message', () => {
    const folder = scratchFolder();
    takeLock(folder, 'npm start');
    expect(() => takeLock(folder, 'npm run stack')).toThrow(
      new RegExp(`npm start, pid ${process.pid}, since \\d{4}-`),
    );
  });

  test('can be taken again after its release', () => {
    const folder = scratchFolder();
    takeLock(folder, 'npm start').release();
    takeLock(folder, 'npm start').release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['of a process that has exited', JSON.stringify({ pid: 2 ** 22 + 1, identity: 'gone' })],
    ['of a pid that another process has now', JSON.stringify({ pid: process.pid, identity: 'x' })],
    ['that a crash has truncated', '{"pid": 1'],
    ['that is empty', ''],
  ])('is taken over if the file is one %s', (_, text) => {
    const folder = scratchFolder();
    writeFileSync(join(folder, 'lock'), text);
    takeLock(folder, 'npm start').release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
