import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { isSameProcess, startIdentity, startTicksOf } from './identity.ts';

describe('the identity of a process', () => {
  test('stays the same while the process runs, and is gone after its exit', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await once(child, 'spawn');
    const pid = child.pid ?? 0;
    const identity = startIdentity(pid) ?? '';
    expect(isSameProcess(pid, identity)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isSameProcess(pid, identity)).toBe(false);
  });

  test('differs from that of an earlier process with the same pid', () => {
    expect(isSameProcess(process.pid, 'an earlier start')).toBe(false);
  });

  test('is parsed after a command name with spaces and parentheses', () => {
    const stat = `7 (a) b (c)) S ${Array.from({ length: 18 }, (_, index) => index).join(' ')} 4711 0`;
    expect(startTicksOf(stat)).toBe('4711');
  });

  test('is undefined for a zombie', () => {
    expect(startTicksOf(`7 (node) Z ${'0 '.repeat(18)}4711 0`)).toBeUndefined();
  });
});
