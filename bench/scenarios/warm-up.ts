import { closedLoop, type Load } from '../load/loops.ts';
import type { Bench } from '../scenario.ts';

export const CONNECTIONS = 64;

/** Options of every scenario with a plain load. */
export const LOAD_OPTIONS = {
  warmup: { default: 40, meaning: 'seconds of closed loop before the measurements' },
  endpoints: { default: 20, meaning: 'endpoints, one webhook each' },
};

/**
 * Runs a closed loop in the same processes. A gateway needed 0.35 CPU seconds per 1,000 messages after 3 s and 0.21
 * after 15 s; a new broker needs three times as much as a warm one.
 */
export async function warmUp(
  { log, measure }: Bench,
  load: Load,
  { warmup, isCounted }: { warmup: number; isCounted?: (endpoint: number) => boolean },
): Promise<void> {
  log(`Warming up for ${warmup} s`);
  await measure({
    name: 'warm-up',
    ...(isCounted && { isCounted }),
    load: () => closedLoop(load, { connections: CONNECTIONS, seconds: warmup }),
  });
}
