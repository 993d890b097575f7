import { describe, expect, test } from '@jest/globals';
import { runProgram } from './run-program.ts';

const node = (script: string, timeoutMs?: number): Promise<string> =>
  runProgram(process.execPath, ['-e', script], timeoutMs === undefined ? {} : { timeoutMs });

describe('a program', () => {
  test('returns its output', async () => {
    expect(await node('console.log("19 rules found")')).toBe('19 rules found\n');
  });

  test('that fails throws all that it wrote', async () => {
    const failing = node('console.log("rule 3:"); console.error("no such label"); process.exit(2)');
    await expect(failing).rejects.toThrow(/exit code 2.*\nrule 3:\nno such label$/);
  });

  test('that hangs is killed', async () => {
    await expect(node('setInterval(() => {}, 1000)', 300)).rejects.toThrow('signal SIGKILL');
  });

  test('that does not exist is an error', async () => {
    await expect(runProgram('no-such-program', [])).rejects.toThrow('ENOENT');
  });
});
