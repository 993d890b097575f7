import { describe, expect, it } from '@jest/globals';
import { bookTurn, createLine, endAttempt } from './endpoint-line.ts';

describe('turns that are booked at an endpoint', () => {
  it('lie behind each other, as far apart as places come free when all of them are taken', () => {
    const line = createLine('wh_1');
    endAttempt(line, 160, 0);
    expect([bookTurn(line, 16, 1_000), bookTurn(line, 16, 1_000)]).toEqual([6_010, 6_020]);
  });

  it('lie behind those that wait in memory', () => {
    const line = createLine('wh_1');
    endAttempt(line, 1_600, 0);
    const waiting = { sinceMs: 0, answer: () => undefined };
    line.waiting.slow = Array.from({ length: 100 }, () => waiting);
    expect(bookTurn(line, 16, 1_000)).toBe(1_000 + 10_000 + 100);
  });
});
