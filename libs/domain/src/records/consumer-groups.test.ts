import { describe, expect, test } from '@jest/globals';
import { consumerGroups } from './consumer-groups.ts';
import type { DelayTopic } from './topics.ts';

const NAMES = {
  messageCreated: 'p.message-created',
  retryDue: 'p.retry-due',
  slowLane: 'p.slow-lane',
  deliveryFailed: 'p.delivery-failed',
};

const DELAY_TOPICS = new Map<string, DelayTopic>([
  ['p.retry.5s', { kind: 'retry', delayMs: 5_000 }],
  ['p.retry.5m', { kind: 'retry', delayMs: 300_000 }],
  ['p.deferred.5s', { kind: 'deferred', delayMs: 5_000 }],
  ['p.deferred.1m', { kind: 'deferred', delayMs: 60_000 }],
  ['p.deferred.61s', { kind: 'deferred', delayMs: 61_000 }],
]);

describe('the delay topics', () => {
  test('of both kinds are read by two groups: one for delays up to a minute, one for longer ones', () => {
    const { releaseShort, releaseLong } = consumerGroups('p.', NAMES, DELAY_TOPICS);
    expect(releaseShort).toEqual({
      groupId: 'p.retry-release-short',
      topics: ['p.retry.5s', 'p.deferred.5s', 'p.deferred.1m'],
    });
    expect(releaseLong).toEqual({
      groupId: 'p.retry-release-long',
      topics: ['p.retry.5m', 'p.deferred.61s'],
    });
  });

  test('leave one group without topics when all delays are short', () => {
    const short = new Map([...DELAY_TOPICS].slice(0, 1));
    expect(consumerGroups('p.', NAMES, short).releaseLong.topics).toEqual([]);
  });
});

test('Every topic that is worked on belongs to one group', () => {
  const groups = Object.values({ ...consumerGroups('p.', NAMES, DELAY_TOPICS) });
  const topics = groups.flatMap((group) => group.topics);
  expect(topics.toSorted()).toEqual([...Object.values(NAMES), ...DELAY_TOPICS.keys()].toSorted());
});
