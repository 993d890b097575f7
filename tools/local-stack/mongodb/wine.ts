import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { wine64, wineserver } from '../machine/parts.ts';
import { exitOf } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { StackError } from '../stack-error.ts';
import { type Log, narrate, settlesWithin } from '../waiting.ts';

export function winePrefix(stackDir: string): string {
  return join(stackDir, 'wine');
}

/** Without a display, and without the .NET and HTML parts that wine would offer to download. */
export function wineEnv(prefix: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    DISPLAY: undefined,
    WINEPREFIX: prefix,
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree=;mshtml=;winemenubuilder.exe=',
  };
}

/** Sets up the folder wine works in, once; what an interrupted set-up left is made again. */
export async function prepareWine(stackDir: string, children: Children, log: Log): Promise<void> {
  const prefix = winePrefix(stackDir);
  if (existsSync(prefix)) return;
  const unfinished = `${prefix}.part`;
  await endWineserver(unfinished);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  await narrate(
    log,
    'Setting up wine for MongoDB (once per stack folder)',
    boot(unfinished, stackDir, children),
  );
  renameSync(unfinished, prefix);
}

/** Output to a file: the background processes of wine hold on to it, so a pipe would never close. */
async function boot(prefix: string, stackDir: string, children: Children): Promise<void> {
  const child = children.start({
    name: 'wineboot',
    command: wine64() ?? 'wine64',
    args: ['wineboot', '-i'],
    env: wineEnv(prefix),
    port: 0,
    logPath: join(stackDir, 'logs', 'wineboot.log'),
    stopTimeoutMs: 5_000,
    isOneShot: true,
    // Its background processes stay otherwise. The server writes the registry when it ends.
    afterExit: () => endWineserver(prefix),
  });
  const exit = await child.exited;
  if (exit !== 'exit code 0')
    throw new StackError(`Setting up wine failed (${exit}); see ${child.log}`);
}

/** Ends every wine process of this stack folder: they are daemons in groups of their own. */
export async function stopWine(stackDir: string): Promise<void> {
  await endWineserver(winePrefix(stackDir));
  await endWineserver(`${winePrefix(stackDir)}.part`);
}

async function endWineserver(prefix: string): Promise<void> {
  const program = wineserver();
  if (program === undefined || !existsSync(prefix)) return;
  await runBounded(program, '-k', prefix);
  await runBounded(program, '-w', prefix);
}

async function runBounded(program: string, option: string, prefix: string): Promise<void> {
  const child = spawn(program, [option], { env: wineEnv(prefix), stdio: 'ignore' });
  if (!(await settlesWithin(exitOf(child), 10_000))) child.kill('SIGKILL');
}
