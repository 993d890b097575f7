import { diedMessage } from '../processes/child.ts';
import { type Children, createChildren } from '../processes/children.ts';
import { type StackLock, takeLock } from '../processes/lock.ts';
import { endOrphans } from '../processes/recover.ts';
import { readSettings, type Settings } from '../settings.ts';
import { messageOf, StackError } from '../stack-error.ts';
import type { Log } from '../waiting.ts';
import { removeStackFile } from './stack-file.ts';
import { stopRequest } from './stop-request.ts';

export interface Stack {
  settings: Settings;
  children: Children;
  log: Log;
  /** For what is no child process; run after the children that use it are gone. */
  onStop(stop: () => Promise<void>): void;
}

/** Runs a stack in the foreground, from the lock of its folder to the exit code of this process. */
export async function supervise(
  command: string,
  up: (stack: Stack) => Promise<void>,
): Promise<never> {
  const log: Log = (line) => {
    console.log(line);
  };
  const requested = stopRequest();
  try {
    const settings = readSettings(process.env);
    const lock = takeLock(settings.stackDir, command);
    return process.exit(await superviseLocked({ settings, lock, requested, log }, up));
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
  up: (stack: Stack) => Promise<void>,
): Promise<number> {
  const { stackDir } = settings;
  const children = createChildren(stackDir);
  const stops: (() => Promise<void>)[] = [];
  const onStop = (stop: () => Promise<void>) => void stops.unshift(stop);
  try {
    await endOrphans(stackDir, log);
    removeStackFile(stackDir);
    const running = up({ settings, children, log, onStop });
    return await untilOver(running, requested, children, log);
  } finally {
    const hasRun = children.list().length > 0;
    await children.stopAll();
    for (const stop of stops) await stop();
    removeStackFile(stackDir);
    lock.release();
    if (hasRun) log('Stopped.');
  }
}

/** Resolves with the exit code when the stack is to stop; what made it stop has been said by then. */
async function untilOver(
  running: Promise<void>,
  requested: Promise<string>,
  children: Children,
  log: Log,
): Promise<number> {
  const died = new Promise<never>((_, reject) => {
    children.onUnexpectedExit((child, exit) => {
      reject(new StackError(diedMessage(child, exit)));
    });
  });
  try {
    await Promise.race([requested, died, running.then(() => requested)]);
    log('\nStopping (what is under way is finished first) …');
    return 0;
  } catch (error) {
    console.error(messageOf(error));
    if (children.list().length > 0) log('Stopping …');
    return 1;
  }
}
