/** A tick that is repeated. */
export interface Ticker {
  stop: () => void;
}

/**
 * Calls `tick` every `everyMs`, the first time after that time, until it is stopped. Does not keep the
 * process alive.
 *
 * For synchronous ticks. Work that awaits may fail with what it asks, and belongs in a loop (loop.ts),
 * which logs its failures and runs one round at a time. A synchronous tick that throws is a fault of the
 * program, and ends the process.
 */
export function startTicker(everyMs: number, tick: () => void): Ticker {
  const timer = setInterval(tick, everyMs).unref();
  return {
    stop() {
      clearInterval(timer);
    },
  };
}
