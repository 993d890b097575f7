import { expect, test } from '@jest/globals';
import { createDatabaseTime } from './database-time.ts';

const NOON_MS = Date.UTC(2026, 10, 29, 12);
const HOUR_MS = 3_600_000;

/** Clocks that can be moved; the database replies after `replyMs`. */
function createClocks() {
  const clocks = {
    systemMs: NOON_MS,
    monotonicMs: 5_000,
    databaseMs: NOON_MS,
    replyMs: 0,
    isAway: false,
  };
  const pass = (ms: number): void => {
    clocks.systemMs += ms;
    clocks.monotonicMs += ms;
    clocks.databaseMs += ms;
  };
  const time = createDatabaseTime({
    databaseMs() {
      const { databaseMs } = clocks;
      pass(clocks.replyMs);
      return clocks.isAway ? Promise.reject(new Error('away')) : Promise.resolve(databaseMs);
    },
    systemMs: () => clocks.systemMs,
    monotonicMs: () => clocks.monotonicMs,
  });
  return { clocks, pass, time };
}

test.each([HOUR_MS, -HOUR_MS])(
  'the time is that of the database while the clock of the process is ahead by %i ms',
  async (aheadMs) => {
    const { clocks, pass, time } = createClocks();
    await time.look();
    clocks.systemMs += aheadMs;
    pass(2_000);
    expect(time.nowMs()).toBe(NOON_MS + 2_000);
    expect(time.earlierMs()).toBe(NOON_MS + 2_000 + Math.min(0, aheadMs));
  },
);

test('a reply that took a while makes the time late, never early', async () => {
  const { clocks, time } = createClocks();
  clocks.replyMs = 300;
  await time.look();
  expect(clocks.databaseMs - time.nowMs()).toBe(300);
});

test('a reply that took more than a second changes the time only when there is none', async () => {
  const { clocks, time } = createClocks();
  clocks.replyMs = 10_000;
  await time.look();
  expect(clocks.databaseMs - time.nowMs()).toBe(10_000);
  clocks.replyMs = 0;
  await time.look();
  expect(time.nowMs()).toBe(clocks.databaseMs);
  clocks.replyMs = 10_000;
  await time.look();
  expect(time.nowMs()).toBe(clocks.databaseMs);
});

test('the time follows a database whose clock was set', async () => {
  const { clocks, time } = createClocks();
  await time.look();
  clocks.databaseMs += HOUR_MS;
  await time.look();
  expect([time.nowMs(), time.earlierMs()]).toEqual([NOON_MS + HOUR_MS, NOON_MS]);
});

test('a database that does not reply leaves the time as it is', async () => {
  const { clocks, pass, time } = createClocks();
  await time.look();
  clocks.systemMs += HOUR_MS;
  clocks.isAway = true;
  await expect(time.look()).rejects.toThrow('away');
  pass(60_000);
  expect(time.nowMs()).toBe(NOON_MS + 60_000);
});
