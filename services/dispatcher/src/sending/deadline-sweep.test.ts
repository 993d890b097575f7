import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createDeadlineSweep, type DeadlineSweep, type WithDeadline } from './deadline-sweep.ts';

let nowMs = 0;
let sweep: DeadlineSweep;
let expired: string[] = [];

beforeEach(() => {
  jest.useFakeTimers();
  nowMs = 0;
  expired = [];
  sweep = createDeadlineSweep(() => nowMs);
});

afterEach(() => {
  sweep.stop();
  jest.useRealTimers();
});

function add(name: string, deadlineAtMs: number): WithDeadline {
  const work = { deadlineAtMs, expire: () => expired.push(name) };
  sweep.add(work);
  return work;
}

describe('the deadline sweep', () => {
  test('expires what has passed its deadline, oldest first and once', () => {
    add('a', 100);
    add('b', 200);
    add('c', 201);
    nowMs = 200;
    sweep.tick();
    sweep.tick();
    expect(expired).toEqual(['a', 'b']);
  });

  test('expires nothing before its deadline', () => {
    add('a', 100);
    nowMs = 99.9;
    sweep.tick();
    expect(expired).toEqual([]);
  });

  test('does not expire what was removed before its deadline', () => {
    const a = add('a', 100);
    add('b', 100);
    sweep.remove(a);
    nowMs = 500;
    sweep.tick();
    expect(expired).toEqual(['b']);
  });

  test('does not expire what an earlier expiry has removed', () => {
    const b: WithDeadline = { deadlineAtMs: 100, expire: () => expired.push('b') };
    const a: WithDeadline = {
      deadlineAtMs: 100,
      expire: () => {
        expired.push('a');
        sweep.remove(a);
        sweep.remove(b);
      },
    };
    sweep.add(a);
    sweep.add(b);
    nowMs = 100;
    sweep.tick();
    expect(expired).toEqual(['a']);
  });

  test('sweeps ten times a second until it is stopped', () => {
    add('a', 50);
    add('b', 1_000);
    nowMs = 100;
    jest.advanceTimersByTime(100);
    expect(expired).toEqual(['a']);
    sweep.stop();
    nowMs = 2_000;
    jest.advanceTimersByTime(2_000);
    expect(expired).toEqual(['a']);
  });
});
