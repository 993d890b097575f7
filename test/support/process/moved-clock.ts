import { readFileSync } from 'node:fs';

/**
 * Loaded into a service with `--import`: its wall clock is ahead of the real one by the milliseconds
 * in the file that MOVED_CLOCK_FILE names. As when the clock of a machine is set, timers and the
 * monotonic clock do not change.
 */
const path = process.env.MOVED_CLOCK_FILE ?? '';
/** Far below what a test can notice, and at most 50 small reads per second. */
const READ_EVERY_MS = 20;

const realNowMs = Date.now;
let aheadMs = 0;
let readAtMs = -Infinity;

function movedNowMs(): number {
  const monotonicMs = performance.now();
  if (monotonicMs - readAtMs >= READ_EVERY_MS) {
    aheadMs = Number(readFileSync(path, 'utf8'));
    readAtMs = monotonicMs;
  }
  return realNowMs() + aheadMs;
}

Date.now = movedNowMs;
globalThis.Date = new Proxy(Date, {
  construct: (date, parts: unknown[], target: typeof Date) =>
    Reflect.construct(date, parts.length === 0 ? [movedNowMs()] : parts, target) as Date,
});
