import { describe, expect, test } from '@jest/globals';
import { secondsOf } from './seconds.ts';

describe('the seconds of a phase', () => {
  test('count an event when it happened and a latency when it was to begin', () => {
    const seconds = secondsOf(
      [{ intendedAtMs: 5_900, acceptedAtMs: 6_100, arrivedAtMs: 7_050 }],
      5_000,
    );
    expect(seconds).toEqual([
      {
        second: 0,
        accepted: 0,
        delivered: 0,
        acceptMs: { p50: 200, p99: 200 },
        endToEndMs: { p50: 1_150, p99: 1_150 },
      },
      { second: 1, accepted: 1, delivered: 0, ...nothing() },
      { second: 2, accepted: 0, delivered: 1, ...nothing() },
    ]);
  });

  test('show a second in which nothing happened', () => {
    const seconds = secondsOf([{ intendedAtMs: 0, acceptedAtMs: 10, arrivedAtMs: 3_500 }], 0);
    expect(seconds.map(({ accepted, delivered }) => [accepted, delivered])).toEqual([
      [1, 0],
      [0, 0],
      [0, 0],
      [0, 1],
    ]);
  });

  test('do not count a message that never arrived as delivered', () => {
    const seconds = secondsOf([{ intendedAtMs: 0, acceptedAtMs: 10, arrivedAtMs: undefined }], 0);
    expect(seconds).toMatchObject([{ accepted: 1, delivered: 0, endToEndMs: { p50: null } }]);
  });
});

function nothing() {
  return { acceptMs: { p50: null, p99: null }, endToEndMs: { p50: null, p99: null } };
}
