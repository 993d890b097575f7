import { setTimeout as wait } from 'node:timers/promises';

const PAUSE_MS = 50;
/** Pauses are this many times longer than the checks, so that waiting leaves the processor to the services. */
const PAUSE_PER_CHECK = 9;
const MAX_PAUSE_MS = 1_000;

/** Only a failure takes as long: what is slow on a busy machine must not fail. */
const WITHIN_MS = 60_000;

/**
 * Calls `check` until it returns something truthy and returns that; throws with `what` and the last
 * result after `withinMs`. What lasts only a moment needs a `maxPauseMs` that is shorter than that moment.
 */
export async function eventually<T>(
  what: string,
  check: () => Promise<T> | T,
  withinMs = WITHIN_MS,
  maxPauseMs = MAX_PAUSE_MS,
): Promise<NonNullable<T>> {
  const deadlineMs = Date.now() + withinMs;
  for (;;) {
    const startedMs = performance.now();
    const last = await check();
    if (last) return last;
    if (Date.now() > deadlineMs) {
      throw new Error(`${what}: not within ${withinMs} ms, last seen ${JSON.stringify(last)}`);
    }
    const pauseMs = PAUSE_MS + PAUSE_PER_CHECK * (performance.now() - startedMs);
    await wait(Math.min(pauseMs, maxPauseMs));
  }
}
