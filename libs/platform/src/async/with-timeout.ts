/** A step did not end in time; it may still be running. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** Returns what the step resolves to. Throws TimeoutError after `timeoutMs`; the step is not ended by that. */
export async function withTimeout<T>(step: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new TimeoutError(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([step, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
