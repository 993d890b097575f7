#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { run } from './program.ts';
import { Interrupted, OutputClosed } from './failures.ts';

const interruption = new AbortController();
const interrupt = (): void => {
  interruption.abort(new Interrupted());
};
// SIGHUP comes when the terminal is closed. Without a terminal, `nohup` may have it ignored.
const isInTerminal = process.stdout.isTTY || process.stderr.isTTY;
for (const signal of ['SIGINT', 'SIGTERM', ...(isInTerminal ? ['SIGHUP'] : [])]) {
  // A second signal ends the process at once, as without a listener.
  process.once(signal, interrupt);
}
// SIGTERM to `npx` ends npx and the shell between, and this process goes on (seen with npm 11). Its new parent shows it.
if (process.env.npm_command === 'exec') {
  const { ppid } = process;
  setInterval(() => {
    if (process.ppid !== ppid) interrupt();
  }, 500).unref();
}
// `posthorn … | head` closes the pipe, and a terminal may be gone: there is nobody to print for.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    interruption.abort(new OutputClosed());
  });
}

/** The variable is that of xdg-open and of many other programs. */
function browserOf(url: string): [command: string, args: string[]] {
  if (process.env.BROWSER) return [process.env.BROWSER, [url]];
  if (process.platform === 'darwin') return ['open', [url]];
  if (process.platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url]];
  return ['xdg-open', [url]];
}

/** The browser goes on after this process. */
function browse(url: string): Promise<boolean> {
  const [command, args] = browserOf(url);
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('error', () => {
      resolve(false);
    });
    child.once('spawn', () => {
      resolve(true);
    });
  });
}

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  homeFolder: homedir(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  browse,
  signal: interruption.signal,
});
