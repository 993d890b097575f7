import { describe, expect, test } from '@jest/globals';
import { DEFAULT_DEFERRAL_DELAYS, deferralDelaysSchema } from '../schedule/deferral-delays.ts';
import { DEFAULT_RETRY_DELAYS, retryScheduleSchema } from '../schedule/retry-schedule.ts';
import { delayTopicsAmong, topicNames, topicSpecs } from './topics.ts';

const DAY_MS = 86_400_000;
const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);
const deferralDelays = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
const namesOf = (prefix: string) => topicNames(prefix, schedule, deferralDelays);

describe('topics', () => {
  test('are one for each purpose and one for each delay', () => {
    expect(topicSpecs(namesOf('posthorn.')).map(({ name }) => name)).toEqual([
      ...['posthorn.message-created', 'posthorn.delivery-failed', 'posthorn.retry-due'],
      ...['posthorn.slow-lane', 'posthorn.dead-letters', 'posthorn.operator-events'],
      ...['posthorn.retry.5s', 'posthorn.retry.5m', 'posthorn.retry.30m'],
      ...['posthorn.retry.2h', 'posthorn.retry.5h', 'posthorn.retry.10h'],
      ...['posthorn.deferred.1s', 'posthorn.deferred.5s', 'posthorn.deferred.15s'],
      ...['posthorn.deferred.1m', 'posthorn.deferred.5m', 'posthorn.deferred.30m'],
      ...['posthorn.deferred.2h', 'posthorn.deferred.12h'],
    ]);
  });

  test('are shared by steps of equal delay', () => {
    const { parkedByDelayMs } = topicNames('', [1_000, 2_000, 1_000, 60_000, 60_000], []);
    expect([...parkedByDelayMs]).toEqual([
      [1_000, 'retry.1s'],
      [2_000, 'retry.2s'],
      [60_000, 'retry.1m'],
    ]);
  });

  test('of a delay that is in the schedule and among the deferrals are two', () => {
    const names = topicNames('p.', [5_000], [1_000, 5_000]);
    expect(names.parkedByDelayMs.get(5_000)).toBe('p.retry.5s');
    expect([...names.deferredByDelayMs]).toEqual([
      [1_000, 'p.deferred.1s'],
      [5_000, 'p.deferred.5s'],
    ]);
  });

  test('of two installations never meet', () => {
    const names = (prefix: string) => topicSpecs(namesOf(prefix)).map(({ name }) => name);
    expect(names('a.').filter((name) => names('b.').includes(name))).toEqual([]);
  });

  test('keep a parked or deferred record for its delay and an outage of a week', () => {
    const specs = new Map(
      topicSpecs(namesOf('')).map(({ name, retentionMs }) => [name, retentionMs]),
    );
    const { parkedByDelayMs, deferredByDelayMs } = namesOf('');
    for (const [delayMs, name] of [...parkedByDelayMs, ...deferredByDelayMs]) {
      expect(specs.get(name)).toBe(delayMs + 7 * DAY_MS);
    }
  });

  test('of earlier delays are found by their names, and nothing else is', () => {
    const existing = [
      ...['p.retry.5s', 'p.retry.90m', 'p.deferred.5s', 'p.deferred.45s'],
      ...['p.retry-due', 'q.retry.5s', 'p.retry.soon', 'p.retry.'],
      ...['p.deferred', 'q.deferred.5s', 'p.deferred.soon', 'p.deferred.', 'p.deferred.retry.5s'],
    ];
    expect([...delayTopicsAmong('p.', existing)]).toEqual([
      ['p.retry.5s', { kind: 'retry', delayMs: 5_000 }],
      ['p.retry.90m', { kind: 'retry', delayMs: 5_400_000 }],
      ['p.deferred.5s', { kind: 'deferred', delayMs: 5_000 }],
      ['p.deferred.45s', { kind: 'deferred', delayMs: 45_000 }],
    ]);
  });

  test('of today are found with their kind and delay, whatever the prefix', () => {
    for (const prefix of ['', 'p.', 'retry.', 'deferred.']) {
      const names = namesOf(prefix);
      const found = delayTopicsAmong(
        prefix,
        topicSpecs(names).map(({ name }) => name),
      );
      const retries = [...names.parkedByDelayMs].map(
        ([delayMs, name]) => [name, { kind: 'retry', delayMs }] as const,
      );
      const deferred = [...names.deferredByDelayMs].map(
        ([delayMs, name]) => [name, { kind: 'deferred', delayMs }] as const,
      );
      expect([...found]).toEqual([...retries, ...deferred]);
    }
  });

  test('keep payloads, which lie in message-created only, for three days', () => {
    const created = topicSpecs(namesOf('')).find(({ name }) => name === 'message-created');
    expect(created?.retentionMs).toBe(3 * DAY_MS);
    // Kafka deletes whole segments: a day more at most would be a day of payloads.
    expect(created?.segmentMs).toBe(DAY_MS / 4);
  });
});
