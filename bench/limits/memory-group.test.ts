import { expect, test } from '@jest/globals';
import { killedIn } from './memory-group.ts';

test('counts processes killed by the kernel, in both versions of the file', () => {
  expect(killedIn('oom_kill_disable 0\nunder_oom 0\noom_kill 2\n')).toBe(2);
  expect(killedIn('low 0\nhigh 0\nmax 7\noom 3\noom_kill 1\noom_group_kill 0\n')).toBe(1);
  expect(killedIn('oom_kill_disable 0\n')).toBe(0);
});
