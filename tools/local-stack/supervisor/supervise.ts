import { unexpectedExitMessage } from '../processes/child.ts';
import { type Children, createChildren } from '../processes/children.ts';
import { type StackLock, takeLock } from '../processes/lock.ts';
import { endOrphans } from './end-orphans.ts';
import { readSettings, type Settings } from '../settings.ts';
import { messageOf, StackError } from '../stack-error.ts';
import { type Log, waitForStopRequest } from '../waiting.ts';
import { removeStackFile } from './stack-file.ts';

export interface Stack {
  settings: Settings;
  children: Children;
  log: Log;
  /** Registers the stop of something that is not a child process. It runs after all children have exited. */
  onStop(stop: () => Promise<void>): void;
}

/** Runs a stack in the foreground: takes the lock, starts the stack, waits for its end, stops it and exits. */
export async function supervise(
  command: string,
  start: (stack: Stack) => Promise<void>,
): Promise<never> {
  const log: Log = (line) => {
    console.log(line);
  };
  const requested = waitForStopRequest();
  try {
    const settings = readSettings(process.env);
    const lock = takeLock(settings.stackDir, command);
    return process.exit(await superviseLocked({ settings, lock, requested, log }, start));
  } catch (error) {
    console.error(messageOf(error));
    return process.exit(1);
  }
}

interface Locked {
  settings: Settings;
  lock: StackLock;
  requested: Promise<string>;
  log: Log;
}

async function superviseLocked(
  { settings, lock, requested, log }: Locked,
  start: (stack: Stack) => Promise<void>,
): Promise<number> {
  const { stackDir } = settings;
  const children = createChildren(stackDir);
  const stops: (() => Promise<void>)[] = [];
  const onStop = (stop: () => Promise<void>) => void stops.unshift(stop);
  try {
    await endOrphans(stackDir, log);
    removeStackFile(stackDir);
    const running = start({ settings, children, log, onStop });
    return await waitForEnd(running, requested, children, log);
  } finally {
    const hasRun = children.list().length > 0;
    await children.stopAll();
    for (const stop of stops) await stop();
    removeStackFile(stackDir);
    lock.release();
    if (hasRun) log('Stopped.');
  }
}

/** Waits until the stack has to stop, and logs the reason. Returns the exit code. */
async function waitForEnd(
  running: Promise<void>,
  requested: Promise<string>,
  children: Children,
  log: Log,
): Promise<number> {
  const died = new Promise<never>((_, reject) => {
    children.onUnexpectedExit((child, exit) => {
      reject(new StackError(unexpectedExitMessage(child, exit)));
    });
  });
  try {
    await Promise.race([requested, died, running.then(() => requested)]);
    log('\nStopping after the running work is finished …');
    return 0;
  } catch (error) {
    console.error(messageOf(error));
    if (children.list().length > 0) log('Stopping …');
    return 1;
  }
}
