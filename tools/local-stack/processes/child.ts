import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';
import { lastLines, openLogFile } from './log-file.ts';
import { signalGroup } from './signal-group.ts';

export interface ChildSpec {
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  port: number;
  logPath: string;
  stopTimeoutMs: number;
  /** Ends by itself: its end is no news. */
  isOneShot?: boolean;
  /** Asks the process to end; SIGTERM to its group unless given. */
  askToStop?: () => Promise<void>;
  /** Clears away what a process of this kind leaves behind, however it ended. */
  afterExit?: () => Promise<void>;
}

/** What `stack.json` tells about a process. */
export interface StackProcess {
  name: string;
  pid: number;
  port: number;
  log: string;
}

export interface Child extends StackProcess {
  /** Resolves, never rejects, when the process is gone: "exit code 1" or "signal SIGKILL". */
  exited: Promise<string>;
  /** False as long as its end would be news. */
  mayEnd(): boolean;
  stop(): Promise<void>;
  /** SIGKILL to the whole group, as a crash would be. */
  kill(): Promise<void>;
}

/** Output goes straight to the log file, not through this process: it outlives a supervisor that was killed. */
export function startChild(spec: ChildSpec): Child {
  const logFd = openLogFile(spec.logPath);
  const child = spawn(spec.command, spec.args, {
    detached: true,
    env: spec.env ?? process.env,
    cwd: spec.cwd,
    stdio: ['ignore', logFd, logFd],
  });
  closeSync(logFd);
  const exited = exitOf(child).then(async (exit) => {
    await spec.afterExit?.();
    return exit;
  });
  if (child.pid === undefined) throw new StackError(`${spec.name}: cannot run ${spec.command}`);
  return describe(spec, child.pid, exited);
}

function describe(spec: ChildSpec, pid: number, exited: Promise<string>): Child {
  let stopping: Promise<void> | undefined;
  return {
    name: spec.name,
    pid,
    port: spec.port,
    log: spec.logPath,
    exited,
    mayEnd: () => spec.isOneShot === true || stopping !== undefined,
    stop: () => (stopping ??= stop(spec, pid, exited)),
    kill: () => (stopping ??= kill(pid, exited)),
  };
}

async function stop(spec: ChildSpec, pid: number, exited: Promise<string>): Promise<void> {
  const asked = spec.askToStop?.().catch(() => undefined);
  if (asked === undefined) signalGroup(pid, 'SIGTERM');
  if (!(await settlesWithin(exited, spec.stopTimeoutMs))) signalGroup(pid, 'SIGKILL');
  await exited;
  signalGroup(pid, 'SIGKILL');
}

async function kill(pid: number, exited: Promise<string>): Promise<void> {
  signalGroup(pid, 'SIGKILL');
  await exited;
}

export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('exit', (code, signal) => {
      resolve(signal === null ? `exit code ${code ?? '?'}` : `signal ${signal}`);
    });
  });
}

export function diedMessage(child: StackProcess, exit: string): string {
  return `${child.name} ended by itself (${exit}). The last lines of ${child.log}:\n${lastLines(child.log)}`;
}

/** For waits on a process that may die instead of becoming ready. */
export async function orItsDeath<T>(child: Child, ready: Promise<T>): Promise<T> {
  const death = child.exited.then((exit) => {
    throw new StackError(diedMessage(child, exit));
  });
  return Promise.race([ready, death]);
}
