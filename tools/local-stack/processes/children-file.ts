import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from './write-file-atomically.ts';

/** A running process in `children.json`. After a supervisor was killed, the next start stops these processes. */
export interface RecordedChild {
  name: string;
  pid: number;
  identity: string;
}

export function childrenFilePath(stackDir: string): string {
  return join(stackDir, 'children.json');
}

export function writeChildrenFile(stackDir: string, children: readonly RecordedChild[]): void {
  if (children.length === 0) rmSync(childrenFilePath(stackDir), { force: true });
  else writeFileAtomically(childrenFilePath(stackDir), JSON.stringify(children, null, 2));
}

export function readChildrenFile(stackDir: string): RecordedChild[] {
  try {
    return JSON.parse(readFileSync(childrenFilePath(stackDir), 'utf8')) as RecordedChild[];
  } catch {
    return [];
  }
}
