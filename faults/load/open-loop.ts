import { setTimeout as wait } from 'node:timers/promises';
import { createOpenLoopSchedule } from '../../bench/load/loops.ts';

export interface OpenLoop {
  /** Returns how many messages were not sent because too many were under way. */
  skipped: () => number;
  /** Stops sending, and waits for the responses. */
  stop: () => Promise<void>;
}

/** Requests in flight at most: while no response comes for half a minute, more would only use up connections. */
const MAX_UNDER_WAY = 480;
const TICK_MS = 2;

/** Calls `send` with 0, 1, 2, … at a fixed rate, whether responses come or not. */
export function startOpenLoop(ratePerSecond: number, send: (n: number) => Promise<void>): OpenLoop {
  const stopping = new AbortController();
  const state = { underWay: new Set<Promise<void>>(), skipped: 0 };
  const running = run(ratePerSecond, send, state, stopping.signal);
  return {
    skipped: () => state.skipped,
    async stop() {
      stopping.abort();
      await running;
      await Promise.all(state.underWay);
    },
  };
}

async function run(
  ratePerSecond: number,
  send: (n: number) => Promise<void>,
  state: { underWay: Set<Promise<void>>; skipped: number },
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  const schedule = createOpenLoopSchedule(ratePerSecond, Number.MAX_SAFE_INTEGER / ratePerSecond);
  for (let n = 0; !signal.aborted;) {
    const due = schedule.dueCount(performance.now() - startedMs);
    for (; n < due; n += 1) {
      if (state.underWay.size >= MAX_UNDER_WAY) {
        state.skipped += 1;
        continue;
      }
      const sending = send(n);
      state.underWay.add(sending);
      void sending.then(() => state.underWay.delete(sending));
    }
    await wait(TICK_MS);
  }
}
