import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEndOfFile } from './left-running.ts';

/** Creates an empty folder, removed after the tests of this file. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-scratch-'));
  atEndOfFile(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
