import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { createChildren, readChildrenFile, childrenFilePath, inStopOrder } from './children.ts';
import { isSameProcess } from './identity.ts';

function program(folder: string, script: string) {
  return {
    name: 'program',
    command: process.execPath,
    args: ['-e', script],
    port: 0,
    logPath: join(folder, 'program.log'),
    stopTimeoutMs: 300,
  };
}

describe('the children of a stack', () => {
  test('are in the children file while they run, and have exited after the stop', async () => {
    const folder = scratchFolder();
    const children = createChildren(folder);
    const { pid } = children.start(program(folder, 'setInterval(() => {}, 1000)'));
    const [recorded] = readChildrenFile(folder);
    expect(recorded).toMatchObject({ name: 'program', pid });
    await children.stopAll();
    expect(isSameProcess(pid, recorded?.identity ?? '')).toBe(false);
    expect(existsSync(childrenFilePath(folder))).toBe(false);
  });

  test('are killed when they ignore SIGTERM', async () => {
    const folder = scratchFolder();
    const children = createChildren(folder);
    const script =
      "process.on('SIGTERM', () => {}); console.log('ignoring'); setInterval(() => {}, 1000)";
    const child = children.start(program(folder, script));
    await child.stop();
    expect(await child.exited).toMatch(/^signal SIG(KILL|TERM)$/);
  });

  test('report unexpected exits only', async () => {
    const folder = scratchFolder();
    const children = createChildren(folder);
    const exits: string[] = [];
    children.onUnexpectedExit((child, exit) => exits.push(`${child.name}: ${exit}`));
    const failing = children.start(program(folder, 'process.exitCode = 3'));
    await failing.exited;
    const stopped = children.start(program(folder, 'setInterval(() => {}, 1000)'));
    await stopped.stop();
    expect(exits).toEqual(['program: exit code 3']);
  });

  test('throw what a failed one-shot program wrote to standard error', async () => {
    const children = createChildren(scratchFolder());
    const script = "console.error('no such topic'); process.exitCode = 1";
    const run = children.run({ name: 'Set-up', command: process.execPath, args: ['-e', script] });
    await expect(run).rejects.toThrow('Set-up failed (exit code 1):\n  no such topic');
  });

  test('cannot be started after the stop has begun', async () => {
    const folder = scratchFolder();
    const children = createChildren(folder);
    await children.stopAll();
    expect(() => children.start(program(folder, ''))).toThrow('the stack is stopping');
  });
});

test('one-shot programs stop first, then the gateway, the other services and the stores', () => {
  const names = [
    'kafka',
    'redis',
    'retry',
    'wineboot',
    'mongodb',
    'gateway-2',
    'gateway',
    'dispatcher',
  ];
  expect(inStopOrder(names.map((name) => ({ name }))).map(({ name }) => name)).toEqual([
    'wineboot',
    'gateway-2',
    'gateway',
    'dispatcher',
    'retry',
    'redis',
    'mongodb',
    'kafka',
  ]);
});
