import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';

export interface ChildSpec {
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  port: number;
  logPath: string;
  stopTimeoutMs: number;
  /** Exits by itself, so that its exit is not reported. */
  isOneShot?: boolean;
  /** Requests the exit of the process. By default SIGTERM is sent to its process group. */
  requestStop?: () => Promise<void>;
  /** Cleans up after the process, however it exited. */
  afterExit?: () => Promise<void>;
}

/** A process in `stack.json`. */
export interface StackProcess {
  name: string;
  pid: number;
  port: number;
  log: string;
}

export interface Child extends StackProcess {
  /** Resolves when the process has exited, with "exit code 1" or "signal SIGKILL". Never rejects. */
  exited: Promise<string>;
  /** Returns whether the process exits by itself or has been asked to stop. */
  isExitExpected(): boolean;
  stop(): Promise<void>;
  /** Sends SIGKILL to the process group, to simulate a crash. */
  kill(): Promise<void>;
}

/** Starts a process. It writes its output directly to the log file, so that it survives the death of this supervisor. */
export function startChild(spec: ChildSpec): Child {
  const logFd = openLogFile(spec.logPath);
  const child = spawn(spec.command, spec.args, {
    detached: true,
    env: spec.env ?? process.env,
    cwd: spec.cwd,
    stdio: ['ignore', logFd, logFd],
  });
  closeSync(logFd);
  const exited = waitForExit(child).then(async (exit) => {
    await spec.afterExit?.();
    return exit;
  });
  if (child.pid === undefined) throw new StackError(`${spec.name}: cannot run ${spec.command}`);
  return createChild(spec, child.pid, exited);
}

function createChild(spec: ChildSpec, pid: number, exited: Promise<string>): Child {
  let stopping: Promise<void> | undefined;
  return {
    name: spec.name,
    pid,
    port: spec.port,
    log: spec.logPath,
    exited,
    isExitExpected: () => spec.isOneShot === true || stopping !== undefined,
    stop: () => (stopping ??= stop(spec, pid, exited)),
    kill: () => (stopping ??= kill(pid, exited)),
  };
}

async function stop(spec: ChildSpec, pid: number, exited: Promise<string>): Promise<void> {
  const request = spec.requestStop?.().catch(() => undefined);
  if (request === undefined) signalGroup(pid, 'SIGTERM');
  if (!(await settlesWithin(exited, spec.stopTimeoutMs))) signalGroup(pid, 'SIGKILL');
  await exited;
  signalGroup(pid, 'SIGKILL');
}

async function kill(pid: number, exited: Promise<string>): Promise<void> {
  signalGroup(pid, 'SIGKILL');
  await exited;
}

/** Resolves when the process has exited or cannot be started, with the reason. Never rejects. */
export function waitForExit(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('exit', (code, signal) => {
      resolve(signal === null ? `exit code ${code ?? '?'}` : `signal ${signal}`);
    });
  });
}

export function unexpectedExitMessage(child: StackProcess, exit: string): string {
  return `${child.name} exited unexpectedly (${exit}). The last lines of ${child.log}:\n${lastLines(child.log)}`;
}

/** Returns the result of `ready`. Throws if the process exits before that. */
export async function failOnExit<T>(child: Child, ready: Promise<T>): Promise<T> {
  const exited = child.exited.then((exit) => {
    throw new StackError(unexpectedExitMessage(child, exit));
  });
  return Promise.race([ready, exited]);
}

/** Opens a new log file. Keeps the previous one as NAME.log.1, because it is often needed after a restart. */
function openLogFile(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if (existsSync(path)) renameSync(path, `${path}.1`);
  return openSync(path, 'a');
}

export function lastLines(path: string, count = 15): string {
  return lastLinesOf(existsSync(path) ? readFileSync(path, 'utf8') : '', count);
}

export function lastLinesOf(text: string, count = 15): string {
  const lines = text.trimEnd().split('\n').slice(-count);
  return lines.map((line) => `  ${line}`).join('\n');
}

/** Signals the process group of a child, which includes the child's own children. Ignores that it has exited already. */
export function signalGroup(leaderPid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leaderPid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
