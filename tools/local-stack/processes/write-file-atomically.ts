import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes a file so that a reader sees either the old content or the new one, never a part of it. */
export function writeFileAtomically(path: string, text: string, mode = 0o644): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  // The folder may have been deleted while the stack runs; that must not be an error.
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true });
  writeFileSync(unfinished, text, { mode });
  renameSync(unfinished, path);
}
