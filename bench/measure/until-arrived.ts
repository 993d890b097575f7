import { setTimeout as wait } from 'node:timers/promises';

const CHECK_EVERY_MS = 50;

export interface Patience {
  /** Gives up after this long without an arrival. */
  quietMs: number;
  /** Gives up after this long in any case. */
  totalMs: number;
  signal: AbortSignal;
}

/** Waits until nothing is missing. A backlog may take long, but a time without arrivals ends the wait. */
export async function untilArrived(
  missing: () => number,
  { quietMs, totalMs, signal }: Patience,
): Promise<void> {
  const endMs = performance.now() + totalMs;
  let lastMissing = Infinity;
  let lastChangeMs = performance.now();
  for (;;) {
    const nowMs = performance.now();
    const nowMissing = missing();
    if (nowMissing === 0 || signal.aborted) return;
    if (nowMissing < lastMissing) [lastMissing, lastChangeMs] = [nowMissing, nowMs];
    if (nowMs - lastChangeMs > quietMs || nowMs > endMs) return;
    await wait(CHECK_EVERY_MS);
  }
}
