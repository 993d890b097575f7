import { describe, expect, it } from '@jest/globals';
import { decideCase } from '../../../../../test/support/isolation/gate-cases.ts';
import type { AttemptView, EndpointView } from './views.ts';
import { fastQueuesInOrder } from './who-goes-next.ts';

describe('the places of an endpoint', () => {
  const mayGo = (
    queue: AttemptView['queue'],
    running: EndpointView['running'],
    more: Partial<EndpointView> = {},
  ): boolean => decideCase({ attempt: { queue }, endpoint: { running, ...more } }).kind === 'now';

  it.each([1, 2, 3, 5, 16])('are given to retries up to half of them, of %i', (concurrency) => {
    const most = Math.ceil(concurrency / 2);
    expect(mayGo('retry', { first: 0, retry: most - 1, slow: 0 }, { concurrency })).toBe(true);
    expect(mayGo('retry', { first: 0, retry: most, slow: 0 }, { concurrency })).toBe(false);
  });

  it('are reserved to a quarter for the slow lane while anything waits in it', () => {
    const twelve = { first: 8, retry: 4, slow: 0 };
    expect(mayGo('first', twelve, { waitingSlow: 1 })).toBe(false);
    expect(mayGo('first', twelve, { waitingSlow: 0 })).toBe(true);
    expect(mayGo('first', { ...twelve, first: 7 }, { waitingSlow: 1 })).toBe(true);
    expect(mayGo('slow', twelve, { waitingSlow: 1 })).toBe(true);
  });

  it('reserve one for the slow lane when there are few, and alternate when there is one', () => {
    const none = { first: 0, retry: 0, slow: 0 };
    const one = { first: 1, retry: 0, slow: 0 };
    expect(mayGo('first', one, { waitingSlow: 1, concurrency: 2 })).toBe(false);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 2 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1 })).toBe(false);
    expect(mayGo('slow', none, { waitingSlow: 1, concurrency: 1 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1, wasSlowLast: true })).toBe(true);
  });

  it('never exceed its limit, over all queues together', () => {
    for (const queue of ['first', 'retry', 'slow'] as const) {
      expect(mayGo(queue, { first: 4, retry: 4, slow: 8 })).toBe(false);
    }
  });
});

describe('the order of the fast queues', () => {
  it('puts retries first at every fourth choice', () => {
    const retriesFirst = [1, 2, 3, 4, 5, 6, 7, 8].filter(
      (choice) => fastQueuesInOrder(choice)[0] === 'retry',
    );
    expect(retriesFirst).toEqual([4, 8]);
  });
});
