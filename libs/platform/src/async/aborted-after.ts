import { setMaxListeners } from 'node:events';

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
