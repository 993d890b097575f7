import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createDeadlineSweep, type DeadlineSweep, type Timed } from './deadline-sweep.ts';

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

function add(name: string, deadlineAtMs: number): Timed {
  const timed = { deadlineAtMs, expire: () => expired.push(name) };
  sweep.add(timed);
  return timed;
}

describe('the deadline sweep', () => {
  test('expires what is over, oldest first, and only once', () => {
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

  test('leaves alone what ended in time', () => {
    const a = add('a', 100);
    add('b', 100);
    sweep.remove(a);
    nowMs = 500;
    sweep.tick();
    expect(expired).toEqual(['b']);
  });

  test('lets an expiry remove itself and others', () => {
    const b: Timed = { deadlineAtMs: 100, expire: () => expired.push('b') };
    const a: Timed = {
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

  test('sweeps by itself ten times a second until stopped', () => {
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
