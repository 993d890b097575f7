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
