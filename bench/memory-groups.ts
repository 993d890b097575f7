import { dirname, join } from 'node:path';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Where control groups with a memory limit can be created (cgroups(7)). */
export interface MemoryHierarchy {
  version: 1 | 2;
  /** Folders in which a group can be created, the best one first. */
  parents: string[];
}

/**
 * Returns the hierarchy described by /proc/self/mountinfo and /proc/self/cgroup; null where memory is not
 * controlled by groups. Groups are created inside our own one, so that our limits apply to the services as well.
 */
export function memoryHierarchyOf(mountInfo: string, selfCgroup: string): MemoryHierarchy | null {
  const mounts = mountInfo.split('\n').flatMap(readMount);
  // Where both are mounted, version 1 controls the memory; otherwise it would not list it as an option.
  const first = mounts.find(({ type, options }) => type === 'cgroup' && options.includes('memory'));
  if (first) return hierarchy(1, first, pathIn(selfCgroup, /^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/m));
  const second = mounts.find(({ type }) => type === 'cgroup2');
  return second ? hierarchy(2, second, pathIn(selfCgroup, /^0::(.*)$/m)) : null;
}

interface Mount {
  type: string;
  /** The part of the hierarchy that is mounted; "/" for all of it. */
  root: string;
  mountPoint: string;
  options: string[];
}

/** proc_pid_mountinfo(5): fields of the mount, " - ", then type, source and options. */
function readMount(line: string): Mount[] {
  const [left = '', right = ''] = line.split(' - ');
  const [, , , root, mountPoint] = left.split(' ');
  const [type, , options = ''] = right.split(' ');
  if (root === undefined || mountPoint === undefined || type === undefined) return [];
  return [{ root, mountPoint, type, options: options.split(',') }];
}

function pathIn(selfCgroup: string, line: RegExp): string | undefined {
  return line.exec(selfCgroup)?.[1];
}

function hierarchy(version: 1 | 2, mount: Mount, path: string | undefined): MemoryHierarchy | null {
  const inside = path === undefined ? null : pathBelow(mount.root, path);
  if (inside === null) return null;
  const own = join(mount.mountPoint, inside);
  const isTop = inside === '' || inside === '/';
  // Version 2 controls no memory below a group that has processes itself, as ours does: use its parent then.
  const parents = version === 1 || isTop ? [own] : [own, dirname(own)];
  return { version, parents };
}

/** Returns null for a path outside the mounted part, which /proc shows as "/..". */
function pathBelow(root: string, path: string): string | null {
  if (path.split('/').includes('..')) return null;
  if (root === '/') return path;
  return path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : null;
}

/** A control group that limits the memory of the processes in it. */
export interface MemoryGroup {
  /** A process that writes its pid here is in the group. */
  procsPath: string;
  /** How many processes the kernel has killed because the group exceeded its limit. */
  killed: () => number;
  /** To be called once its processes have exited. */
  remove: () => Promise<void>;
}

interface GroupSpec {
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
