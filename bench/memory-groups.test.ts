import { describe, expect, test } from '@jest/globals';
import { memoryHierarchyOf, killedIn } from './memory-groups.ts';

const V1 = '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory';
const V2 = '41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const CPU = '33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu';

describe('the folder for control groups with a memory limit', () => {
  test('is inside our own group in version 1, even where version 2 is mounted too', () => {
    const found = memoryHierarchyOf([CPU, V1, V2].join('\n'), '5:cpu:/\n4:memory:/a/b\n0::/c\n');
    expect(found).toEqual({ version: 1, parents: ['/sys/fs/cgroup/memory/a/b'] });
  });

  test('is inside or beside our own group in version 2', () => {
    expect(memoryHierarchyOf(V2, '0::/user.slice/session-1.scope\n')).toEqual({
      version: 2,
      parents: ['/sys/fs/cgroup/user.slice/session-1.scope', '/sys/fs/cgroup/user.slice'],
    });
  });

  test('is never outside what is mounted', () => {
    expect(memoryHierarchyOf(V2, '0::/\n')?.parents).toEqual(['/sys/fs/cgroup/']);
  });

  test('is found in a container that has a part of the hierarchy mounted', () => {
    const mount = '35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory';
    expect(memoryHierarchyOf(mount, '4:memory:/docker/ab\n')).toEqual({
      version: 1,
      parents: ['/sys/fs/cgroup/memory'],
    });
    expect(memoryHierarchyOf(mount, '4:memory:/docker/other\n')).toBeNull();
  });

  test.each([
    ['no group is mounted', '22 1 8:1 / / rw - ext4 /dev/sda rw', '0::/\n'],
    ['only others are', CPU, '5:cpu:/\n'],
    ['our own group is outside of it', V2, '0::/../..\n'],
    ['there is no /proc', '', ''],
  ])('is nowhere when %s', (_, mountInfo: string, selfCgroup: string) => {
    expect(memoryHierarchyOf(mountInfo, selfCgroup)).toBeNull();
  });
});

test('counts processes killed by the kernel, in both versions of the file', () => {
  expect(killedIn('oom_kill_disable 0\nunder_oom 0\noom_kill 2\n')).toBe(2);
  expect(killedIn('low 0\nhigh 0\nmax 7\noom 3\noom_kill 1\noom_group_kill 0\n')).toBe(1);
  expect(killedIn('oom_kill_disable 0\n')).toBe(0);
});
