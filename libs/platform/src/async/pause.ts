import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** Resolves after this time, or as soon as `signal` is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}

/** A step did not end in time; it may still be running. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** Returns what the step resolves to. Throws TimeoutError after `timeoutMs`; the step is not ended by that. */
export async function withTimeout<T>(step: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new TimeoutError(`no response within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([step, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns what the step resolves to. Throws the reason of `signal` as soon as that is aborted; the step is
 * not ended by that.
 */
export async function untilAborted<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      reject(signal.reason as Error);
    };
  });
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted, step]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Returns a signal that is aborted this many milliseconds after the other one. */
export function abortedAfter(signal: AbortSignal, ms: number): AbortSignal {
  const later = new AbortController();
  // Each retry that waits listens to it.
  setMaxListeners(0, later.signal);
  const abort = (): void => {
    later.abort();
  };
  signal.addEventListener('abort', () => setTimeout(abort, ms).unref(), { once: true });
  return later.signal;
}
