import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, StackError } from './stack-error.ts';

export type Log = (line: string) => void;

/** Returns whether `work` resolves or rejects in time. Does not cancel the work. */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController();
  const timeout = sleep(timeoutMs, false, { signal: timer.signal }).catch(() => false);
  const settled = work.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, timeout]);
  timer.abort();
  return inTime;
}

/** Logs the line if the work takes longer than a second: without output, users press Ctrl-C. */
export async function logIfSlow<T>(log: Log, line: string, work: Promise<T>): Promise<T> {
  if (!(await settlesWithin(work, 1_000))) log(line);
  return work;
}

interface Poll {
  /** A noun phrase for the error message, such as "a reply from Redis". */
  what: string;
  timeoutMs: number;
  intervalMs?: number;
}

/** Polls until the check returns true. Throws after the timeout, and rethrows an error of the check. */
export async function waitUntil(poll: Poll, check: () => Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + poll.timeoutMs;
  while (!(await check())) {
    if (performance.now() > endsAtMs) {
      throw new StackError(`Timed out after ${poll.timeoutMs / 1_000} s waiting for ${poll.what}.`);
    }
    await sleep(poll.intervalMs ?? 50);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_CHECK_MS = 500;

/**
 * Resolves with the reason on the first signal, or when the bootstrap process that started this one has exited: after
 * that, this process could not be stopped from its terminal. Later signals, such as a duplicate of Ctrl-C, are ignored.
 */
export function waitForStopRequest(): Promise<string> {
  // After a SIGHUP writes to the terminal fail, which must not interrupt the stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return new Promise((resolve) => {
    for (const signal of SIGNALS)
      process.on(signal, () => {
        resolve(signal);
      });
    if (process.env.POSTHORN_PARENT_PID !== String(process.ppid)) return;
    const parentPid = process.ppid;
    const check = () => {
      if (process.ppid !== parentPid) resolve('the parent process has exited');
    };
    setInterval(check, PARENT_CHECK_MS).unref();
  });
}

/** The exit code that a shell reports for a program ended by SIGINT: 128 + 2. */
const INTERRUPTED = 130;

/** Runs the work until it ends or a stop is requested, and exits: with 1 when it returns false or fails. */
export async function runUntilStopped(
  work: (signal: AbortSignal) => Promise<boolean>,
): Promise<never> {
  const interruption = new AbortController();
  void waitForStopRequest().then((reason) => {
    console.log(`\nStopping (${reason}) …`);
    interruption.abort();
  });
  let isGood = false;
  try {
    isGood = await work(interruption.signal);
  } catch (error) {
    if (!interruption.signal.aborted) console.error(messageOf(error));
  }
  if (interruption.signal.aborted) process.exit(INTERRUPTED);
  return process.exit(isGood ? 0 : 1);
}
