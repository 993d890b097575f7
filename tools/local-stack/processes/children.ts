import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { readFileSync, rmSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { StackError } from '../stack-error.ts';
import {
  type Child,
  type ChildSpec,
  waitForExit,
  startChild,
  type StackProcess,
  lastLinesOf,
  signalGroup,
} from './child.ts';
import { startIdentity } from './identity.ts';

interface OneShot {
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

export type ExitListener = (child: StackProcess, exit: string) => void;

/** The processes of one stack folder. Starts, records, watches and stops them. */
export interface Children {
  start(spec: ChildSpec): Child;
  /** Runs a program and returns its standard output. Throws what it wrote to standard error if it fails. */
  run(oneShot: OneShot): Promise<string>;
  list(): StackProcess[];
  onUnexpectedExit(listener: ExitListener): void;
  stopAll(): Promise<void>;
}

export function createChildren(stackDir: string): Children {
  const running = new Set<Child>();
  const oneShotPids = new Set<number>();
  const listeners = new Set<ExitListener>();
  const record = createRecorder(stackDir);
  let isStopping = false;

  const throwIfStopping = (name: string) => {
    if (isStopping) throw new StackError(`Cannot start ${name}: the stack is stopping.`);
  };
  const watch = async (child: Child) => {
    running.add(child);
    const exit = await child.exited;
    running.delete(child);
    if (!child.isExitExpected()) for (const listener of listeners) listener(child, exit);
  };

  return {
    start: (spec) => {
      throwIfStopping(spec.name);
      const child = startChild(spec);
      record(child.name, child.pid, child.exited);
      void watch(child);
      return child;
    },
    run: async (oneShot) => {
      throwIfStopping(oneShot.name);
      return runOneShot(oneShot, oneShotPids, record);
    },
    list: () => [...running].map(({ name, pid, port, log }) => ({ name, pid, port, log })),
    onUnexpectedExit: (listener) => void listeners.add(listener),
    stopAll: async () => {
      isStopping = true;
      for (const pid of oneShotPids) signalGroup(pid, 'SIGTERM');
      for (const child of inStopOrder([...running])) await child.stop();
    },
  };
}

type RecordProcess = (name: string, pid: number, exited: Promise<unknown>) => void;

/** Keeps the children file up to date with the processes that run. */
function createRecorder(stackDir: string): RecordProcess {
  const recorded = new Map<number, RecordedChild>();
  const write = () => {
    writeChildrenFile(stackDir, [...recorded.values()]);
  };
  return (name, pid, exited) => {
    recorded.set(pid, { name, pid, identity: startIdentity(pid) ?? '' });
    write();
    void exited.then(() => {
      recorded.delete(pid);
      write();
    });
  };
}

async function runOneShot(
  oneShot: OneShot,
  oneShotPids: Set<number>,
  record: RecordProcess,
): Promise<string> {
  const child = spawn(oneShot.command, oneShot.args, {
    detached: true,
    env: oneShot.env ?? process.env,
    cwd: oneShot.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  const exited = waitForExit(child);
  if (pid !== undefined) {
    oneShotPids.add(pid);
    record(oneShot.name, pid, exited);
    void exited.then(() => oneShotPids.delete(pid));
  }
  const [exit, out, err] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  if (exit === 'exit code 0') return out;
  const output = err.trim() === '' ? out : err;
  throw new StackError(`${oneShot.name} failed (${exit}):\n${lastLinesOf(output)}`);
}

/** A running process in `children.json`. After a supervisor was killed, the next start stops these processes. */
export interface RecordedChild {
  name: string;
  pid: number;
  identity: string;
}

export function childrenFilePath(stackDir: string): string {
  return join(stackDir, 'children.json');
}

export function writeChildrenFile(stackDir: string, children: readonly RecordedChild[]): void {
  if (children.length === 0) rmSync(childrenFilePath(stackDir), { force: true });
  else writeFileAtomically(childrenFilePath(stackDir), JSON.stringify(children, null, 2));
}

export function readChildrenFile(stackDir: string): RecordedChild[] {
  try {
    return JSON.parse(readFileSync(childrenFilePath(stackDir), 'utf8')) as RecordedChild[];
  } catch {
    return [];
  }
}

/**
 * The gateway stops first, so that nothing is accepted while the other services drain. The stores stop last, because
 * draining services write to them. One-shot programs are not listed; they stop before all others.
 */
const STOP_ORDER = ['ingest', 'gateway', 'dispatcher', 'retry', 'redis', 'mongodb', 'kafka'];

export function inStopOrder<T extends { name: string }>(processes: readonly T[]): T[] {
  // The second process of a service has the name "gateway-2".
  const placeOf = ({ name }: T): number => STOP_ORDER.indexOf(name.replace(/-\d+$/, ''));
  return processes.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Writes a file so that a reader sees either the old content or the new one, never a part of it. */
export function writeFileAtomically(path: string, text: string, mode = 0o644): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  // The folder may have been deleted while the stack runs; that must not be an error.
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true });
  writeFileSync(unfinished, text, { mode });
  renameSync(unfinished, path);
}
