import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { StackError } from '../stack-error.ts';
import { type Child, type ChildSpec, exitOf, startChild, type StackProcess } from './child.ts';
import { startIdentity } from './identity.ts';
import { lastLinesOf } from './log-file.ts';
import { type RecordedChild, writeRecord } from './record.ts';
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

/** All processes of one stack folder: started, written down, watched and stopped in one place. */
export interface Children {
  start(spec: ChildSpec): Child;
  /** Runs a program to its end and returns its standard output; throws with its own message when it fails. */
  run(oneShot: OneShot): Promise<string>;
  list(): StackProcess[];
  onUnexpectedExit(listener: ExitListener): void;
  stopAll(): Promise<void>;
}

export function createChildren(stackDir: string): Children {
  const running = new Set<Child>();
  const oneShotPids = new Set<number>();
  const listeners = new Set<ExitListener>();
  const register = createRegister(stackDir);
  let isStopping = false;

  const refuseWhileStopping = (name: string) => {
    if (isStopping) throw new StackError(`${name} is not started: the stack is stopping.`);
  };
  const watch = async (child: Child) => {
    running.add(child);
    const exit = await child.exited;
    running.delete(child);
    if (!child.mayEnd()) for (const listener of listeners) listener(child, exit);
  };

  return {
    start: (spec) => {
      refuseWhileStopping(spec.name);
      const child = startChild(spec);
      register(child.name, child.pid, child.exited);
      void watch(child);
      return child;
    },
    run: async (oneShot) => {
      refuseWhileStopping(oneShot.name);
      return runToEnd(oneShot, oneShotPids, register);
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

type Register = (name: string, pid: number, exited: Promise<unknown>) => void;

/** Keeps the record on disk equal to what runs. */
function createRegister(stackDir: string): Register {
  const recorded = new Map<number, RecordedChild>();
  const write = () => {
    writeRecord(stackDir, [...recorded.values()]);
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

async function runToEnd(
  oneShot: OneShot,
  oneShotPids: Set<number>,
  register: Register,
): Promise<string> {
  const child = spawn(oneShot.command, oneShot.args, {
    detached: true,
    env: oneShot.env ?? process.env,
    cwd: oneShot.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  const exited = exitOf(child);
  if (pid !== undefined) {
    oneShotPids.add(pid);
    register(oneShot.name, pid, exited);
    void exited.then(() => oneShotPids.delete(pid));
  }
  const [exit, out, err] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  if (exit === 'exit code 0') return out;
  const said = err.trim() === '' ? out : err;
  throw new StackError(`${oneShot.name} failed (${exit}):\n${lastLinesOf(said)}`);
}
