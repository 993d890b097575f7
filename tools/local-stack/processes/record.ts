import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Every process the stack has running, written at each spawn: what a killed stack leaves for the next start to end. */
export interface RecordedChild {
  name: string;
  pid: number;
  identity: string;
}

export function recordPath(stackDir: string): string {
  return join(stackDir, 'children.json');
}

export function writeRecord(stackDir: string, children: readonly RecordedChild[]): void {
  if (children.length === 0) rmSync(recordPath(stackDir), { force: true });
  else writeWhole(recordPath(stackDir), JSON.stringify(children, null, 2));
}

export function readRecord(stackDir: string): RecordedChild[] {
  try {
    return JSON.parse(readFileSync(recordPath(stackDir), 'utf8')) as RecordedChild[];
  } catch {
    return [];
  }
}

/** A reader sees the old file or the new one, never half of one. */
export function writeWhole(path: string, text: string, mode = 0o644): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  // The folder may have been deleted under a running stack; the record must not fail because of that.
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true });
  writeFileSync(unfinished, text, { mode });
  renameSync(unfinished, path);
}
