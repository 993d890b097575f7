import { setTimeout as wait } from 'node:timers/promises';

/** Resolves after this time, or as soon as `signal` is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
