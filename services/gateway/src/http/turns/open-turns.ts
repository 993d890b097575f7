import { startTicker } from '@posthorn/platform/async/ticker.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { performance } from 'node:perf_hooks';
import { createCompanyRests, type CompanyRests } from './company-rests.ts';
import { createTurns, type Turns } from './turns.ts';

export interface OpenTurns {
  turns: Turns;
  rests: CompanyRests;
}

const TICK_EVERY_MS = 100;

/** Creates the turns of the gateway, and the rests between them. They hold until the process ends. */
export function openTurns(): OpenTurns {
  const rests = createCompanyRests(monotonicClockMs);
  const turns = createTurns({
    inNextRound: setImmediate,
    after: (ms, run) => void setTimeout(run, ms),
    rests,
    monotonicMs: monotonicClockMs,
  });
  let before = performance.eventLoopUtilization();
  startTicker(TICK_EVERY_MS, () => {
    const now = performance.eventLoopUtilization();
    rests.tick(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  });
  return { turns, rests };
}
