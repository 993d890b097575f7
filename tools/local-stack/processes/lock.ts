import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../stack-error.ts';
import { isSameProcess, startIdentity } from './identity.ts';

interface LockHolder {
  pid: number;
  identity: string;
  since: string;
  command: string;
}

export interface StackLock {
  release(): void;
}

/** One supervisor per stack folder. Throws when another one is alive; a lock whose process is gone is taken over. */
export function takeLock(stackDir: string, command: string): StackLock {
  mkdirSync(stackDir, { recursive: true });
  const path = join(stackDir, 'lock');
  while (!tryToWrite(path, command)) {
    const found = readText(path);
    const holder = livingHolder(found);
    if (holder !== undefined) throw new StackError(alreadyRunning(stackDir, holder));
    setStaleAside(path, found);
  }
  return {
    release: () => {
      rmSync(path, { force: true });
    },
  };
}

function tryToWrite(path: string, command: string): boolean {
  const holder: LockHolder = {
    pid: process.pid,
    identity: startIdentity(process.pid) ?? '',
    since: new Date().toISOString(),
    command,
  };
  try {
    writeFileSync(path, JSON.stringify(holder), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** The process a lock file names, if it still lives. A torn file was left by a crash, so nobody holds it. */
export function livingHolder(lockText: string | undefined): LockHolder | undefined {
  try {
    const holder = JSON.parse(lockText ?? '') as LockHolder;
    return isSameProcess(holder.pid, holder.identity) ? holder : undefined;
  } catch {
    return undefined;
  }
}

/** Two starts may find the same stale lock: renaming lets only one have it, and a fresh lock is given back. */
function setStaleAside(path: string, staleText: string | undefined): void {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  if (readText(aside) === staleText) rmSync(aside);
  else renameSync(aside, path);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function alreadyRunning(stackDir: string, holder: LockHolder): string {
  return [
    `A stack is already running in ${stackDir}: ${holder.command}, pid ${holder.pid}, since ${holder.since}.`,
    `Stop it with Ctrl-C in its terminal or "kill ${holder.pid}"; to run a second one beside it, set STACK_DIR and the ports.`,
  ].join('\n');
}
