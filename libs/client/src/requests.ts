import { TimeoutError } from './errors.ts';

// Time limits and waits of requests, for the command line too. This entry may change in any release.

/** Timers of every runtime fire at once for more. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs work with a signal that ends it at the time limit, with a TimeoutError, or with the caller's signal, with its
 * reason. It listens to that one by hand: `AbortSignal.any` keeps memory for each call as long as the caller's lives.
 */
export async function within<T>(
  { timeoutMs, signal: outer }: { timeoutMs: number; signal: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // A signal that is aborted already, or since the caller looked, calls no listener.
  outer?.throwIfAborted();
  if (!(timeoutMs > 0)) throw new TypeError(`timeoutMs must be more than 0; got ${timeoutMs}`);
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort();
  };
  const timer = setTimeout(abort, Math.min(timeoutMs, MAX_TIMER_MS));
  outer?.addEventListener('abort', abort, { once: true });
  try {
    return await work(controller.signal);
  } catch (error) {
    outer?.throwIfAborted();
    if (!controller.signal.aborted) throw error;
    throw new TimeoutError(`Not complete within ${timeoutMs} ms`, { cause: error });
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', abort);
  }
}

/** The cause behind "fetch failed". */
export function reasonOf(error: unknown): string {
  const { code, message } = causesOf(error).at(-1) ?? {};
  // The error of several connections has an empty message.
  return String(message === '' ? code : (message ?? error));
}

/** The error with its causes, outermost first. Of several connections that failed at once, the first one counts. */
export function causesOf(error: unknown): Record<string, unknown>[] {
  if (!isObject(error)) return [];
  const { cause, errors } = error;
  return [error, ...causesOf(cause ?? (Array.isArray(errors) ? errors[0] : null))];
}

/** Rejects with the reason of the signal. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      // The caller's reason, whatever it is, as `throwIfAborted` throws it.
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Returns milliseconds from seconds or a date; null when it is neither. */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? null : Math.max(0, Math.ceil(ms));
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
