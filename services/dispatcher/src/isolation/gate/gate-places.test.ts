import { describe, expect, it } from '@jest/globals';
import { ATTEMPT, decideOf, ENDPOINT } from '../../../../../test/support/isolation/gate-cases.ts';
import { expectedWaitMs } from './expected-wait.ts';
import type { AttemptView, EndpointView } from './views.ts';

describe('the places of an endpoint', () => {
  const mayGo = (
    lane: AttemptView['lane'],
    running: EndpointView['running'],
    more: Partial<EndpointView> = {},
  ): boolean => decideOf({ attempt: { lane }, endpoint: { running, ...more } }).kind === 'now';

  it.each([1, 2, 3, 5, 16])('are half for retries at most, of %i', (concurrency) => {
    const most = Math.ceil(concurrency / 2);
    expect(mayGo('retry', { first: 0, retry: most - 1, slow: 0 }, { concurrency })).toBe(true);
    expect(mayGo('retry', { first: 0, retry: most, slow: 0 }, { concurrency })).toBe(false);
  });

  it('are a quarter for the slow lane as long as anything waits in it', () => {
    const twelve = { first: 8, retry: 4, slow: 0 };
    expect(mayGo('first', twelve, { waitingSlow: 1 })).toBe(false);
    expect(mayGo('first', twelve, { waitingSlow: 0 })).toBe(true);
    expect(mayGo('first', { ...twelve, first: 7 }, { waitingSlow: 1 })).toBe(true);
    expect(mayGo('slow', twelve, { waitingSlow: 1 })).toBe(true);
  });

  it('keep one place for the slow lane of an endpoint that has few, and take turns for a single one', () => {
    const none = { first: 0, retry: 0, slow: 0 };
    const one = { first: 1, retry: 0, slow: 0 };
    expect(mayGo('first', one, { waitingSlow: 1, concurrency: 2 })).toBe(false);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 2 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1 })).toBe(false);
    expect(mayGo('slow', none, { waitingSlow: 1, concurrency: 1 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1, wasSlowLast: true })).toBe(true);
  });

  it('are never more than its limit, over all lanes', () => {
    for (const lane of ['first', 'retry', 'slow'] as const) {
      expect(mayGo(lane, { first: 4, retry: 4, slow: 8 })).toBe(false);
    }
  });
});

describe('the wait that can be expected', () => {
  it('is the longest of what stands against it, and the time of those in front of it', () => {
    const endpoint = { ...ENDPOINT, holdInMs: 300, paceInMs: 200, spacingMs: 50 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 4 }, endpoint)).toBe(500);
  });

  it('counts those in front of it once, when turns were booked behind them already', () => {
    const endpoint = { ...ENDPOINT, bookedInMs: 32_000, spacingMs: 1_000 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 30 }, endpoint)).toBe(32_000);
  });
});
