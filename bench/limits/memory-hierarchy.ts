import { dirname, join } from 'node:path';

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

/** Returns null for a path outside what is mounted here, which /proc shows as "/..". */
function pathBelow(root: string, path: string): string | null {
  if (path.split('/').includes('..')) return null;
  if (root === '/') return path;
  return path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : null;
}
