import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { MemoryHierarchy } from './memory-hierarchy.ts';

/** A control group that limits the memory of the processes in it. */
export interface MemoryGroup {
  /** A process that writes its pid here is in the group. */
  procsPath: string;
  /** How many processes the kernel has killed because the group exceeded its limit. */
  killed: () => number;
  /** To be called once its processes have exited. */
  remove: () => Promise<void>;
}

export interface GroupSpec {
  /** The name of the folder. A folder that a killed run left behind is replaced. */
  name: string;
  limitBytes: number;
}

const FILES = {
  1: {
    limit: 'memory.limit_in_bytes',
    swap: 'memory.memsw.limit_in_bytes',
    events: 'memory.oom_control',
  },
  2: { limit: 'memory.max', swap: 'memory.swap.max', events: 'memory.events' },
};

/** Returns null when no such group can be created here. */
export function makeMemoryGroup(
  { version, parents }: MemoryHierarchy,
  { name, limitBytes }: GroupSpec,
): MemoryGroup | null {
  const files = FILES[version];
  for (const parent of parents) {
    const folder = join(parent, name);
    if (!isMade(folder, files.limit)) continue;
    try {
      writeFileSync(join(folder, files.limit), String(limitBytes));
      refuseSwap(join(folder, files.swap), version === 1 ? limitBytes : 0);
      return groupIn(folder, files.events);
    } catch {
      tryToRemove(folder);
    }
  }
  return null;
}

function isMade(folder: string, limitFile: string): boolean {
  tryToRemove(folder);
  try {
    mkdirSync(folder);
  } catch {
    return false;
  }
  // The kernel fills the folder of a group with the files of its controllers.
  if (existsSync(join(folder, limitFile))) return true;
  tryToRemove(folder);
  return false;
}

/** A pod has no swap. In version 1 this limit is that of memory and swap together. */
function refuseSwap(path: string, bytes: number): void {
  if (existsSync(path)) writeFileSync(path, String(bytes));
}

function groupIn(folder: string, eventsFile: string): MemoryGroup {
  return {
    procsPath: join(folder, 'cgroup.procs'),
    killed: () => killedIn(readFileSync(join(folder, eventsFile), 'latin1')),
    async remove() {
      // The kernel releases a group some time after its last process has exited.
      for (let tries = 0; !tryToRemove(folder) && tries < 40; tries += 1) await wait(50);
    },
  };
}

export function killedIn(events: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
}

/** Returns true when the folder does not exist afterwards. */
function tryToRemove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
