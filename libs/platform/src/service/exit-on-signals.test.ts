import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const MODULE = join(import.meta.dirname, 'exit-on-signals.ts');

/** Runs `code` after the module, sends SIGTERM at its first output, and returns how it ended. */
async function endOf(code: string): Promise<unknown[]> {
  return endOfProgram(`import { exitOnSignals } from ${JSON.stringify(MODULE)};
    setInterval(() => undefined, 1_000);
    ${code}
    console.log('loading');`);
}

async function endOfProgram(source: string): Promise<unknown[]> {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module'];
  const child = spawn(process.execPath, [...flags, '-e', source], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  child.kill('SIGTERM');
  return ended;
}

test('a process that loads its modules ends with 0 on SIGTERM', async () => {
  expect(await endOf('exitOnSignals();')).toEqual([0, null]);
});

test('a service takes the signals over when it has loaded', async () => {
  const code = `exitOnSignals()(); process.on('SIGTERM', () => process.exit(7));`;
  expect(await endOf(code)).toEqual([7, null]);
});

test('a service ends with 0 on a SIGTERM that comes while it reads its settings', async () => {
  const runService = JSON.stringify(join(import.meta.dirname, 'run-service.ts'));
  const ended = await endOfProgram(`import { z } from 'zod';
    import { exitOnSignals } from ${JSON.stringify(MODULE)};
    import { runService } from ${runService};
    setInterval(() => undefined, 1_000);
    const readLevel = (level) => {
      process.kill(process.pid, 'SIGTERM');
      console.log('reading');
      return level;
    };
    const settings = z.object({
      LOG_LEVEL: z.string().default('silent').transform(readLevel),
      DRAIN_TIMEOUT_MS: z.coerce.number().default(1_000),
    });
    await runService('gateway', settings, () => new Promise(() => undefined), exitOnSignals());`);
  expect(ended).toEqual([0, null]);
});
