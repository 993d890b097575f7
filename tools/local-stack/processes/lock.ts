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

/** Locks a stack folder for this supervisor. Throws if another one runs. Takes over a lock whose process has exited. */
export function takeLock(stackDir: string, command: string): StackLock {
  mkdirSync(stackDir, { recursive: true });
  const path = join(stackDir, 'lock');
  while (!tryToWrite(path, command)) {
    const found = readText(path);
    const holder = liveHolder(found);
    if (holder !== undefined) throw new StackError(alreadyRunning(stackDir, holder));
    removeStaleLock(path, found);
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

/** Returns the holder of a lock file if it still runs. A truncated file is the result of a crash, so it has no holder. */
export function liveHolder(lockText: string | undefined): LockHolder | undefined {
  try {
    const holder = JSON.parse(lockText ?? '') as LockHolder;
    return isSameProcess(holder.pid, holder.identity) ? holder : undefined;
  } catch {
    return undefined;
  }
}

/** Removes a stale lock. Renames it first: two starts may find the same one, and a new lock must be put back. */
function removeStaleLock(path: string, staleText: string | undefined): void {
  const renamed = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, renamed);
  } catch {
    return;
  }
  if (readText(renamed) === staleText) rmSync(renamed);
  else renameSync(renamed, path);
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
    `Stop it with Ctrl-C in its terminal or "kill ${holder.pid}". To run a second stack, set STACK_DIR and the ports.`,
  ].join('\n');
}
