import { describe, expect, test } from '@jest/globals';
import { judge } from '../../report/report.ts';
import { phaseFigures } from '../../measure/phase.ts';
import { createArrivals } from '../../load/arrivals.ts';
import { type Judged, overloadGoals } from './goals.ts';

function phase(name: string, deliveredPerSecond: number) {
  const record = { startedAtMs: 0, endedAtMs: 1_000, sent: [], refused: {} };
  const figures = phaseFigures(
    record,
    createArrivals(() => 0),
    () => true,
  );
  const spending = { parts: {}, cpuSecondsPer1000: null, otherCores: null, usage: {} };
  return { name, ...figures, ...spending, deliveredPerSecond };
}

function memory(name: string, dispatcherMiB: number, deferrals: number | null) {
  const peakMiB = { gateway: 100, dispatcher: dispatcherMiB, retry: null };
  return { name, fromSecond: 0, toSecond: 1, peakMiB, slowLane: 0, deferrals, because: {} };
}

function run(changed: Partial<Judged> = {}): Judged {
  return {
    phases: [memory('few', 200, 0), memory('many', 511, 0), memory('hot', 300, 7)],
    connections: { few: phase('few', 1_000), many: phase('many', 940) },
    hot: [phase('hot', 1_490)],
    backlog: {
      name: 'a backlog',
      records: 100,
      waitingAtMost: 90,
      putSeconds: 1,
      drained: 100,
      duplicates: 0,
      seconds: 2,
      deliveredPerSecond: 50,
      hasStalled: false,
    },
    wave: { ...phase('wave', 50), accepted: 49, toFailing: { accepted: 1, attempted: 1 } },
    rest: {
      seconds: 1,
      recoveries: {
        gateway: { baselineBytes: 100, endBytes: 120, recoveredAfterSeconds: 1 },
        dispatcher: { baselineBytes: 100, endBytes: 121, recoveredAfterSeconds: null },
        retry: null,
      },
    },
    ...changed,
  };
}

function isMet(name: RegExp, judged: Judged): boolean | undefined {
  return overloadGoals(judged, { records: 100, many: 50 })
    .map(judge)
    .find((goal) => name.test(goal.name))?.isMet;
}

describe('the goals of the overload scenario', () => {
  test('check the memory of each service in its worst phase', () => {
    expect(isMet(/dispatcher: highest/, run())).toBe(true);
    expect(isMet(/dispatcher: highest/, run({ phases: [memory('few', 513, 0)] }))).toBe(false);
    expect(isMet(/retry: highest/, run())).toBe(false);
  });

  test('compare many connections with few, and count only the deferrals of that phase', () => {
    expect(isMet(/delivered, compared with few/, run())).toBe(false);
    const faster = { few: phase('few', 1_000), many: phase('many', 950) };
    expect(isMet(/delivered, compared with few/, run({ connections: faster }))).toBe(true);
    expect(isMet(/deferrals/, run())).toBe(true);
    expect(isMet(/deferrals/, run({ phases: [memory('many', 100, 1)] }))).toBe(false);
    expect(isMet(/deferrals/, run({ phases: [memory('many', 100, null)] }))).toBe(false);
  });

  test('require that a busy endpoint gets all of its messages', () => {
    expect(isMet(/^hot: delivered/, run())).toBe(true);
    expect(isMet(/^hot: delivered/, run({ hot: [phase('hot', 1_400)] }))).toBe(false);
  });

  test('require the whole backlog and the whole wave', () => {
    expect(isMet(/backlog: drained/, run())).toBe(true);
    expect(isMet(/wave: endpoints/, run())).toBe(true);
    expect(isMet(/wave: endpoints/, run({ wave: phase('wave', 50) }))).toBe(false);
  });

  test('require that the memory of every service recovers, where it can be read', () => {
    expect(isMet(/gateway: resident memory after/, run())).toBe(true);
    expect(isMet(/dispatcher: resident memory after/, run())).toBe(false);
    expect(isMet(/retry: resident memory after/, run())).toBe(false);
  });
});
