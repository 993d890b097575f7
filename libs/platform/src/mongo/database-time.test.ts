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
    asked: 0,
  };
  const pass = (ms: number): void => {
    clocks.systemMs += ms;
    clocks.monotonicMs += ms;
    clocks.databaseMs += ms;
  };
  const time = createDatabaseTime({
    databaseMs() {
      const { databaseMs } = clocks;
      clocks.asked += 1;
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

test('a slow reply makes the time wrong by half of what it took, and only until one is fast', async () => {
  const { clocks, time } = createClocks();
  clocks.replyMs = 10_000;
  await time.look();
  expect(clocks.databaseMs - time.nowMs()).toBe(5_000);
  clocks.replyMs = 2;
  await time.look();
  expect(clocks.databaseMs - time.nowMs()).toBeLessThanOrEqual(1);
  clocks.replyMs = 10_000;
  await time.look();
  expect(clocks.databaseMs - time.nowMs()).toBeLessThanOrEqual(1);
});

test('the database is asked each second until its time is known within 4 ms', async () => {
  const { clocks, time } = createClocks();
  clocks.replyMs = 50;
  for (let n = 0; n < 3; n += 1) await time.lookWhenDue();
  clocks.replyMs = 3;
  for (let n = 0; n < 3; n += 1) await time.lookWhenDue();
  expect(clocks.asked).toBe(4);
});

test('the database is asked each minute when its replies stay slow, and each second when it has another clock', async () => {
  const { clocks, pass, time } = createClocks();
  clocks.replyMs = 50;
  for (let n = 0; n < 100; n += 1) await time.lookWhenDue();
  expect(clocks.asked).toBe(60);
  clocks.databaseMs += HOUR_MS;
  pass(60_000);
  for (let n = 0; n < 10; n += 1) await time.lookWhenDue();
  expect(clocks.asked).toBe(70);
});

test('the database is asked each minute, when its time is doubted, and when the wall clock jumps', async () => {
  const { clocks, pass, time } = createClocks();
  await time.look();
  const looks = async (): Promise<number> => {
    const before = clocks.asked;
    await time.lookWhenDue();
    return clocks.asked - before;
  };
  pass(59_000);
  expect(await looks()).toBe(0);
  pass(1_000);
  expect(await looks()).toBe(1);
  time.doubt();
  expect([await looks(), await looks()]).toEqual([1, 0]);
  // As after the host was suspended.
  clocks.systemMs += HOUR_MS;
  clocks.databaseMs += HOUR_MS;
  expect([await looks(), await looks()]).toEqual([1, 0]);
  expect(time.nowMs()).toBe(clocks.databaseMs);
});

test('the time follows a database whose clock was set', async () => {
  const { clocks, time } = createClocks();
  await time.look();
  clocks.databaseMs += HOUR_MS;
  await time.look();
  expect([time.nowMs(), time.earlierMs()]).toEqual([NOON_MS + HOUR_MS, NOON_MS]);
  clocks.databaseMs -= 2 * HOUR_MS;
  await time.look();
  expect(time.earlierMs()).toBe(NOON_MS - HOUR_MS);
});

test('a database that does not reply leaves the time as it is', async () => {
  const { clocks, pass, time } = createClocks();
  await time.look();
  clocks.systemMs += HOUR_MS;
  clocks.isAway = true;
  await expect(time.look()).rejects.toThrow('away');
  pass(60_000);
  expect(time.nowMs()).toBe(NOON_MS + 60_000);
  clocks.systemMs -= HOUR_MS;
  await expect(time.lookWhenDue()).rejects.toThrow('away');
  pass(59_000);
  await time.lookWhenDue();
});
