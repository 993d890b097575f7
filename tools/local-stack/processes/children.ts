import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { StackError } from '../stack-error.ts';
import { type Child, type ChildSpec, waitForExit, startChild, type StackProcess } from './child.ts';
import { startIdentity } from './identity.ts';
import { lastLinesOf } from './log-file.ts';
import { type RecordedChild, writeChildrenFile } from './children-file.ts';
import { signalGroup } from './signal-group.ts';
import { inStopOrder } from './stop-order.ts';

export interface OneShot {
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
