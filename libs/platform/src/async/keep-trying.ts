import { setTimeout as wait } from 'node:timers/promises';

export interface KeepTryingOptions {
  firstWaitMs?: number;
  maxWaitMs?: number;
  /** Gives up with the last error once aborted. */
  signal?: AbortSignal;
  /** Called after each failure, for the log. */
  onFailure?: (error: unknown, tryNumber: number) => void;
}

/**
 * Repeats a step of ours until it succeeds, with waits that double up to a bound. For steps that
 * must not be lost while a store or Kafka is away; the receivers' failures have the retry schedule.
 */
export async function keepTrying<T>(
  step: () => Promise<T>,
  { firstWaitMs = 100, maxWaitMs = 2_000, signal, onFailure }: KeepTryingOptions = {},
): Promise<T> {
  for (let tryNumber = 1; ; tryNumber += 1) {
    try {
      return await step();
    } catch (error) {
      onFailure?.(error, tryNumber);
      if (signal?.aborted) throw error;
      await wait(Math.min(firstWaitMs * 2 ** (tryNumber - 1), maxWaitMs), undefined, {
        signal,
      }).catch(() => undefined);
    }
  }
}
