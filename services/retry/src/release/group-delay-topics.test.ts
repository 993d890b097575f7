import { describe, expect, test } from '@jest/globals';
import type { DelayTopic } from '@posthorn/domain/records/topics.ts';
import { groupDelayTopics } from './group-delay-topics.ts';

const TOPICS = new Map<string, DelayTopic>([
  ['retry.5s', { kind: 'retry', delayMs: 5_000 }],
  ['retry.5m', { kind: 'retry', delayMs: 300_000 }],
  ['deferred.5s', { kind: 'deferred', delayMs: 5_000 }],
  ['deferred.1m', { kind: 'deferred', delayMs: 60_000 }],
  ['deferred.61s', { kind: 'deferred', delayMs: 61_000 }],
]);

describe('the delay topics', () => {
  test('of both kinds are read by two consumers: one for delays up to a minute, one for longer ones', () => {
    expect(groupDelayTopics(TOPICS)).toEqual({
      short: ['retry.5s', 'deferred.5s', 'deferred.1m'],
      long: ['retry.5m', 'deferred.61s'],
    });
  });

  test('leave one group empty when all delays are short or all are long', () => {
    expect(groupDelayTopics(new Map([...TOPICS].slice(0, 1)))).toEqual({
      short: ['retry.5s'],
      long: [],
    });
  });
});
