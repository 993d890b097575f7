import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { wine64, wineserver } from '../machine/required-programs.ts';
import { waitForExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { StackError } from '../stack-error.ts';
import { type Log, logIfSlow, settlesWithin } from '../waiting.ts';

export function winePrefix(stackDir: string): string {
  return join(stackDir, 'wine');
}

/** Returns an environment without a display, and without the .NET and HTML components that wine would ask to download. */
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

/** Creates the wine prefix if it does not exist. Starts again after an interrupted set-up. */
export async function prepareWine(stackDir: string, children: Children, log: Log): Promise<void> {
  const prefix = winePrefix(stackDir);
  if (existsSync(prefix)) return;
  const unfinished = `${prefix}.part`;
  await stopWineserver(unfinished);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  await logIfSlow(
    log,
    'Setting up wine for MongoDB (once per stack folder) …',
    runWineboot(unfinished, stackDir, children),
  );
  renameSync(unfinished, prefix);
}

/** The output goes to a file: the background processes of wine inherit it, so a pipe would never close. */
async function runWineboot(prefix: string, stackDir: string, children: Children): Promise<void> {
  const child = children.start({
    name: 'wineboot',
    command: wine64() ?? 'wine64',
    args: ['wineboot', '-i'],
    env: wineEnv(prefix),
    port: 0,
    logPath: join(stackDir, 'logs', 'wineboot.log'),
    stopTimeoutMs: 5_000,
    isOneShot: true,
    // Ends the background processes. The wineserver writes the registry when it exits.
    afterExit: () => stopWineserver(prefix),
  });
  const exit = await child.exited;
  if (exit !== 'exit code 0')
    throw new StackError(`Setting up wine failed (${exit}); see ${child.log}`);
}

/** Ends all wine processes of this stack folder. They are daemons in process groups of their own. */
export async function stopWine(stackDir: string): Promise<void> {
  await stopWineserver(winePrefix(stackDir));
  await stopWineserver(`${winePrefix(stackDir)}.part`);
}

async function stopWineserver(prefix: string): Promise<void> {
  const program = wineserver();
  if (program === undefined || !existsSync(prefix)) return;
  await runWithTimeout(program, '-k', prefix);
  await runWithTimeout(program, '-w', prefix);
}

async function runWithTimeout(program: string, option: string, prefix: string): Promise<void> {
  const child = spawn(program, [option], { env: wineEnv(prefix), stdio: 'ignore' });
  if (!(await settlesWithin(waitForExit(child), 10_000))) child.kill('SIGKILL');
}
