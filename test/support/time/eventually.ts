import { setTimeout as wait } from 'node:timers/promises';

const CHECK_EVERY_MS = 25;

/** Calls `check` until it returns something truthy and returns that; throws with `what` and the last result after `withinMs`. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T> | T,
  withinMs = 20_000,
): Promise<NonNullable<T>> {
  const deadlineMs = Date.now() + withinMs;
  for (;;) {
    const last = await check();
    if (last) return last;
    if (Date.now() > deadlineMs) {
      throw new Error(`${what}: not within ${withinMs} ms, last seen ${JSON.stringify(last)}`);
    }
    await wait(CHECK_EVERY_MS);
  }
}
