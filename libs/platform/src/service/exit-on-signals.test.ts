import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const MODULE = join(import.meta.dirname, 'exit-on-signals.ts');

/** Runs `code` after the module, sends SIGTERM at its first output, and returns how it ended. */
async function endOf(code: string): Promise<unknown[]> {
  const source = `import { exitOnSignals } from ${JSON.stringify(MODULE)};
    setInterval(() => undefined, 1_000);
    ${code}
    console.log('loading');`;
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module'];
  const child = spawn(process.execPath, [...flags, '-e', source], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  return once(child, 'exit');
}

test('a process that loads its modules ends with 0 on SIGTERM', async () => {
  expect(await endOf('exitOnSignals();')).toEqual([0, null]);
});

test('a service takes the signals over when it has loaded', async () => {
  const code = `exitOnSignals()(); process.on('SIGTERM', () => process.exit(7));`;
  expect(await endOf(code)).toEqual([7, null]);
});
