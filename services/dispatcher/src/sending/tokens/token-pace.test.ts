import { beforeEach, describe, expect, test } from '@jest/globals';
import { createTokenPace, type PaceTokenRequest } from './token-pace.ts';

const URL_A = 'https://a.example.com/token';

let nowMs: number;
let pace: PaceTokenRequest;

beforeEach(() => {
  nowMs = 1;
  pace = createTokenPace({ perSecond: 10, monotonicMs: () => nowMs });
});

/** Asks for this many requests at once. Returns how many may be made. */
function ask(count: number, tokenUrl = URL_A, companyId = 'comp_a'): number {
  return Array.from({ length: count }, () => pace(companyId, tokenUrl)).filter((ms) => ms === 0)
    .length;
}

describe('token requests of one company to one host', () => {
  test('are made up to the limit at once, and then as time passes', () => {
    expect(ask(100)).toBe(10);
    nowMs += 500;
    expect(ask(100)).toBe(5);
    nowMs += 60_000;
    expect(ask(100)).toBe(10);
  });

  test('above the limit get turns with the same distance, from five seconds on', () => {
    ask(10);
    expect([pace('comp_a', URL_A), pace('comp_a', URL_A)]).toEqual([5_100, 5_200]);
    nowMs += 5_000;
    expect(pace('comp_a', URL_A)).toBe(0);
  });

  test.each(['https://a.example.com:8443/other?x=1', 'https://A.example.com./token'])(
    'are counted together with those to %s',
    (tokenUrl) => {
      ask(10);
      expect(ask(1, tokenUrl)).toBe(0);
    },
  );

  test('take nothing from other hosts and other companies', () => {
    ask(100);
    expect(ask(10, 'https://b.example.com/token')).toBe(10);
    expect(ask(10, URL_A, 'comp_b')).toBe(10);
  });

  test('have no limit unless one is set', () => {
    pace = createTokenPace({ perSecond: 0, monotonicMs: () => nowMs });
    expect(ask(1_000)).toBe(1_000);
  });
});
