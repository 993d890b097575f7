import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ReportedTimes } from '@posthorn/platform/redis/reading-positions.ts';
import { createFollowReaders } from './follow-readers.ts';

let nowMs: number;
let isDue: boolean;
let answer: () => Promise<ReportedTimes>;
/** What the budget was given. */
let noted: (ReportedTimes | null)[];
let released: number;
let follow: () => Promise<void>;

const POSITIONS: ReportedTimes = new Map([[3, 1_000]]);
const away = () => Promise.reject(new Error('Redis is away'));

beforeEach(() => {
  [nowMs, isDue, noted, released] = [0, true, [], 0];
  answer = () => Promise.resolve(POSITIONS);
  follow = createFollowReaders({
    budget: {
      isReadDue: () => isDue,
      partitions: () => new Set([3]),
      noteRead: (positions) => noted.push(positions),
    },
    positions: { read: () => answer() },
    releaseWaiting: () => (released += 1),
    nowMs: () => nowMs,
  });
});

describe('a gateway that follows the dispatchers', () => {
  test('notes what they report, and goes on with companies that wait', async () => {
    await follow();
    expect([noted, released]).toEqual([[POSITIONS], 1]);
  });

  test('asks nothing while nothing is unread', async () => {
    isDue = false;
    await follow();
    expect([noted, released]).toEqual([[], 0]);
  });

  test('keeps the budgets while Redis does not answer, for two seconds', async () => {
    answer = away;
    nowMs = 1_999;
    await follow();
    expect(noted).toEqual([]);
    nowMs = 2_000;
    await follow();
    expect([noted, released]).toEqual([[null], 2]);
  });

  test('counts the two seconds from the last answer, and not while nothing was asked', async () => {
    nowMs = 10_000;
    await follow();
    isDue = false;
    nowMs = 20_000;
    await follow();
    [isDue, answer, nowMs] = [true, away, 21_000];
    await follow();
    expect(noted).toEqual([POSITIONS]);
  });
});
