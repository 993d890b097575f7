import { closedLoop, type Load } from './load/loops.ts';
import type { Bench } from './scenario.ts';

export const CONNECTIONS = 64;

/** Options that every scenario with a plain load has. */
export const LOAD_OPTIONS = {
  warmup: { default: 40, meaning: 'seconds of closed loop before anything is measured' },
  endpoints: { default: 20, meaning: 'endpoints, one webhook each' },
};

/**
 * A closed loop in the same processes: after 3 s a gateway needed .35 CPU seconds per 1,000 messages, after 15 s .21,
 * and a fresh broker three times what a warm one does.
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
