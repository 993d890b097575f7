import { setTimeout as sleep } from 'node:timers/promises';
import { StackError } from './stack-error.ts';

export type Log = (line: string) => void;

/** True when `work` settles (either way) in time. The work itself goes on. */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(timeoutMs, false, { signal: timer.signal }).catch(() => false);
  const settled = work.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, late]);
  timer.abort();
  return inTime;
}

/** Silence makes people press Ctrl-C: work that takes longer than a second says what it is. */
export async function narrate<T>(log: Log, line: string, work: Promise<T>): Promise<T> {
  if (!(await settlesWithin(work, 1_000))) log(line);
  return work;
}

interface Poll {
  what: string;
  timeoutMs: number;
  intervalMs?: number;
}

/** Asks until the answer is true; an exception of `ask` ends the wait. */
export async function until(poll: Poll, ask: () => Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + poll.timeoutMs;
  while (!(await ask())) {
    if (performance.now() > endsAtMs) {
      throw new StackError(`${poll.what} did not happen within ${poll.timeoutMs / 1_000} s.`);
    }
    await sleep(poll.intervalMs ?? 50);
  }
}
