import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';

const made: string[] = [];

afterAll(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Creates an empty folder, removed after the tests of this file. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-scratch-'));
  made.push(folder);
  return folder;
}
