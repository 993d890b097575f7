import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { startTicker, type Ticker } from './ticker.ts';

let ticks: number;
let ticker: Ticker;

beforeEach(() => {
  jest.useFakeTimers();
  ticks = 0;
  ticker = startTicker(100, () => {
    ticks += 1;
  });
});
afterEach(() => {
  ticker.stop();
  jest.useRealTimers();
});

describe('a ticker', () => {
  test('ticks after each interval until it is stopped', () => {
    jest.advanceTimersByTime(99);
    expect(ticks).toBe(0);
    jest.advanceTimersByTime(1);
    expect(ticks).toBe(1);
    jest.advanceTimersByTime(200);
    expect(ticks).toBe(3);
    ticker.stop();
    jest.advanceTimersByTime(1_000);
    expect(ticks).toBe(3);
  });

  test('lets a tick throw to the process', () => {
    const fault = new Error('impossible');
    const throwing = startTicker(50, () => {
      throw fault;
    });
    expect(() => {
      jest.advanceTimersByTime(50);
    }).toThrow(fault);
    throwing.stop();
  });
});
