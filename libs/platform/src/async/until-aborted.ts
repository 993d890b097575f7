import { setMaxListeners } from 'node:events';

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
