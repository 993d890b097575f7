import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Rest {
  /** Share of the last look's time in which the event loop had work, from 0 to 1. */
  busyShare: number;
  residentBytes: number;
  /** What was left after the last collection; null before the first. */
  keptBytes: number | null;
  /** Time since the process last grew and was collected; null when it was collected again since. */
  sinceGrownMs: number | null;
}

/** Less than this, and a pause of some 100 ms delays next to nothing. */
const RESTING_BELOW = 0.1;
/** As much more than after the last collection is worth one. */
const GROWN_BY = 1.1;
const EVERY_MS = 10_000;
/** Caches keep what they remember for up to 60 s, so the collection at the beginning of a rest finds them full. */
const AGAIN_AFTER_MS = 90_000;
/**
 * An ordinary collection leaves freed pages in V8's pool, and a process that allocates a little ten
 * times a second never gives them back: 398 MiB resident with 41 in use, 65 after this one.
 */
const LAST_RESORT = { type: 'major', flavor: 'last-resort' };

export function isWorthCollecting(rest: Rest): boolean {
  if (rest.busyShare >= RESTING_BELOW) return false;
  return hasGrown(rest) || (rest.sinceGrownMs ?? 0) >= AGAIN_AFTER_MS;
}

function hasGrown({ residentBytes, keptBytes }: Rest): boolean {
  return keptBytes === null || residentBytes > keptBytes * GROWN_BY;
}

/**
 * V8 collects when memory is asked for, and a process that rests asks for none: after a burst the
 * dispatcher held 638 MB for as long as it rested, of which 326 were in use. Returns what ends it.
 */
export function collectAtRest(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  let keptBytes: number | null = null;
  let grownAtMs: number | null = null;
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization: busyShare } = performance.eventLoopUtilization(now, before);
    before = now;
    const nowMs = performance.now();
    const sinceGrownMs = grownAtMs === null ? null : nowMs - grownAtMs;
    const rest = { busyShare, residentBytes: process.memoryUsage.rss(), keptBytes, sinceGrownMs };
    if (!isWorthCollecting(rest)) return;
    grownAtMs = hasGrown(rest) ? nowMs : null;
    collect(LAST_RESORT);
    keptBytes = process.memoryUsage.rss();
  };
  const timer = setInterval(look, EVERY_MS).unref();
  return () => {
    clearInterval(timer);
  };
}
