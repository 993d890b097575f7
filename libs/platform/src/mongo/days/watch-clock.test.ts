import { beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '../../service/logger.ts';
import { createClockWatch } from './watch-clock.ts';

const NOW_MS = Date.UTC(2026, 10, 26);
const HOUR_MS = 3_600_000;
const MONTH_MS = 31 * 24 * HOUR_MS;

let clocks: { wallMs: number; idsMs: number };
let reasons: (string | null)[];
let exits: number[];

beforeEach(() => {
  clocks = { wallMs: NOW_MS, idsMs: NOW_MS };
  [reasons, exits] = [[], []];
});

const open = () =>
  createClockWatch({
    databaseMs: () => NOW_MS,
    ownMs: () => [clocks.wallMs, clocks.idsMs],
    lifecycle: {
      waitFor: (reason) => void reasons.push(reason),
      shutDown: (_reason, code) => Promise.resolve(void exits.push(code)),
    },
    logger: createLogger('test', 'silent'),
  });

test.each([0, 2_000, HOUR_MS, -HOUR_MS, 11 * HOUR_MS])(
  'a clock that is ahead by %i ms is right enough, for any time',
  (aheadMs) => {
    clocks = { wallMs: NOW_MS + aheadMs, idsMs: NOW_MS + Math.max(0, aheadMs) };
    const watch = open();
    for (let look = 0; look < 20; look += 1) watch.look();
    expect([watch.isRight(), reasons, exits]).toEqual([true, [], []]);
  },
);

test.each([-MONTH_MS, MONTH_MS, -13 * HOUR_MS])(
  'a clock that is ahead by %i ms is wrong until it is corrected',
  (aheadMs) => {
    clocks.wallMs += aheadMs;
    const watch = open();
    watch.look();
    expect([watch.isRight(), reasons]).toEqual([false, [expect.stringContaining('12 hours')]]);
    clocks.wallMs = NOW_MS;
    watch.look();
    expect([watch.isRight(), reasons.at(-1), exits]).toEqual([true, null, []]);
  },
);

test('the process ends when its clock stays wrong for five minutes', () => {
  clocks.wallMs -= MONTH_MS;
  const watch = open();
  for (let look = 0; look < 5; look += 1) watch.look();
  expect(exits).toEqual([]);
  watch.look();
  expect(exits).toEqual([1]);
});

test('ids of a clock that was ahead are wrong after it is corrected', () => {
  clocks.idsMs += MONTH_MS;
  const watch = open();
  watch.look();
  expect(watch.isRight()).toBe(false);
});
