import type { Round } from '../round.ts';
import { USUAL_LAYOUT } from '../stack/layout.ts';

const HOUR_MS = 3_600_000;

function jumping(name: string, jumpMs: number): Round {
  return {
    name: `F13-${name}`,
    summary: `the clock of dispatchers and retry services jumps an hour ${name} and returns`,
    promise:
      '0 lost, 0 duplicates, each retry is made once and is early only by the jump of the clock',
    seconds: [20],
    layout: { ...USUAL_LAYOUT, hasOwnClock: true },
    // A consumer that waits for the head of a delay topic to be due reads the clock once a minute.
    recoverWithinMs: () => 100_000,
    hasClockJumps: true,
    async inject({ clock, pause, say, seconds }) {
      clock?.setAheadBy(jumpMs);
      say(`the clock is an hour ${name}`);
      try {
        await pause(seconds * 1_000);
      } finally {
        clock?.setAheadBy(0);
      }
      say('the clock is right again');
      return { endedAtMs: Date.now() };
    },
  };
}

export const CLOCKS: readonly Round[] = [jumping('ahead', HOUR_MS), jumping('back', -HOUR_MS)];
