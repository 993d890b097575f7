import { describe, expect, test } from '@jest/globals';
import { createArrivals } from '../../load/arrivals.ts';
import { phaseFigures } from '../../measure/phase.ts';
import type { Usage } from '../../measure/watch-usage.ts';
import { judge } from '../../report/report.ts';
import { createBacklogTracker, MAX_BACKLOG_ENDPOINTS } from './backlog.ts';
import { type Judged, overloadGoals } from './report.ts';
import { areRecovered, baselineOf, createTimeLeft, recoveriesAt } from './rest.ts';

function phase(name: string, deliveredPerSecond: number) {
  const record = { startedAtMs: 0, endedAtMs: 1_000, sent: [], refused: {} };
  const arrivals = createArrivals(() => 0);
  const figures = phaseFigures(record, arrivals, () => true);
  const spending = { parts: {}, cpuSecondsPer1000: null, otherCores: null, usage: {} };
  return { name, ...figures, ...spending, deliveredPerSecond };
}

function memory(name: string, dispatcherMiB: number, deferrals: number | null) {
  const peakMiB = { gateway: 100, dispatcher: dispatcherMiB, retry: null };
  return { name, fromSecond: 0, toSecond: 1, peakMiB, slowLane: 0, deferrals, because: {} };
}

function isMet(name: RegExp, changed: Partial<Judged> = {}): boolean | undefined {
  const run: Judged = {
    phases: [memory('few', 200, 0), memory('many', 511, 0), memory('hot', 300, 7)],
    connections: { few: phase('few', 1_000), many: phase('many', 940) },
    hot: [phase('hot', 1_490)],
    backlog: { drained: 100 },
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
  const goals = overloadGoals(run, { records: 100, many: 50 }).map(judge);
  return goals.find((goal) => name.test(goal.name))?.isMet;
}

describe('the goals of the overload scenario', () => {
  const faster = { few: phase('few', 1_000), many: phase('many', 950) };
  test.each<[string, boolean, RegExp, Partial<Judged>]>([
    ['the memory of a service in its worst phase', true, /dispatcher: highest/, {}],
    ['more memory', false, /dispatcher: highest/, { phases: [memory('few', 513, 0)] }],
    ['memory that cannot be read', false, /retry: highest/, {}],
    ['94 % with many connections', false, /compared with few/, {}],
    ['95 % with many connections', true, /compared with few/, { connections: faster }],
    ['deferrals in another phase', true, /deferrals/, {}],
    ['a deferral with many connections', false, /deferrals/, { phases: [memory('many', 1, 1)] }],
    ['deferrals that are not known', false, /deferrals/, { phases: [memory('many', 1, null)] }],
    ['all messages of a busy endpoint', true, /^hot: delivered/, {}],
    ['fewer of them', false, /^hot: delivered/, { hot: [phase('hot', 1_400)] }],
    ['the whole backlog', true, /backlog: drained/, {}],
    ['the whole wave', true, /wave: endpoints/, {}],
    ['a part of the wave', false, /wave: endpoints/, { wave: phase('wave', 50) }],
    ['a memory that has recovered', true, /gateway: resident memory after/, {}],
    ['one that has not', false, /dispatcher: resident memory after/, {}],
  ])('with %s are met: %s', (_what, isExpected, name, changed) => {
    expect(isMet(name, changed)).toBe(isExpected);
  });
});

describe('the records of a backlog', () => {
  test('are missing until they have arrived at their endpoint', () => {
    const tracker = createBacklogTracker(2);
    tracker.expect(['msg_1', 'msg_2']);
    tracker.note('msg_1', 0);
    tracker.note('msg_2', 1);
    expect([tracker.missing(), tracker.expected()]).toEqual([2, 4]);
  });

  test('are duplicates when they arrive again, and ignored when they were not expected', () => {
    const tracker = createBacklogTracker(MAX_BACKLOG_ENDPOINTS);
    tracker.expect(['msg_1']);
    const last = MAX_BACKLOG_ENDPOINTS - 1;
    for (const id of ['msg_1', 'msg_1', 'msg_other']) tracker.note(id, last);
    expect([tracker.duplicates(), tracker.missing()]).toEqual([1, last]);
  });
});

describe('the recovery of memory', () => {
  const usageOf = (gateway: number, dispatcher?: number): Usage => ({
    gateway: { cpuSeconds: 0, residentBytes: gateway },
    ...(dispatcher !== undefined && { dispatcher: { cpuSeconds: 0, residentBytes: dispatcher } }),
  });
  const baseline = { gateway: 100, dispatcher: 100, retry: null };

  test('begins with the median of the last samples', () => {
    const samples = [900, 100, 130, 110].map((bytes, atMs) => ({ atMs, usage: usageOf(bytes) }));
    expect(baselineOf(samples, 1)).toEqual({ gateway: 110, dispatcher: null, retry: null });
  });

  test('is complete while every service that can be read is within 20 %', () => {
    let recoveries = recoveriesAt(
      { gateway: null, dispatcher: null, retry: null },
      { baseline, usage: usageOf(120, 300), seconds: 1 },
    );
    expect(areRecovered(recoveries)).toBe(false);
    recoveries = recoveriesAt(recoveries, { baseline, usage: usageOf(200, 115), seconds: 2 });
    expect(areRecovered(recoveries)).toBe(false);
    recoveries = recoveriesAt(recoveries, { baseline, usage: usageOf(90, 115), seconds: 3 });
    expect(areRecovered(recoveries)).toBe(true);
    expect(recoveries).toEqual({
      gateway: { baselineBytes: 100, endBytes: 90, recoveredAfterSeconds: 1 },
      dispatcher: { baselineBytes: 100, endBytes: 115, recoveredAfterSeconds: 2 },
      retry: null,
    });
  });
});

test('a wait gets the requested time, the time that is left of the run, or a minimum', () => {
  let nowMs = 0;
  const left = createTimeLeft(1_000, () => nowMs);
  expect(left.atMost(300, 400)).toBe(300);
  nowMs = 500_000;
  expect([left.atMost(300, 400), left.atMost(300, 490), left.atMost(5, 490)]).toEqual([100, 15, 5]);
});
