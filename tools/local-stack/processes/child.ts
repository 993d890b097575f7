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
  /** Exits by itself, so that its exit is not reported. */
  isOneShot?: boolean;
  /** Asks the process to exit. By default SIGTERM is sent to its process group. */
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
