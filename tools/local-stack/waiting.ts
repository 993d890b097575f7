import { setTimeout as sleep } from 'node:timers/promises';
import { StackError } from './stack-error.ts';

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
