import { describe, expect, test } from '@jest/globals';
import { DEFAULT_RETRY_DELAYS, retryScheduleSchema } from './retry-schedule.ts';
import { delayTopicsAmong, topicNames, topicSpecs } from './topics.ts';

const DAY_MS = 86_400_000;
const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);

describe('topics', () => {
  test('are one for each purpose and one for each delay', () => {
    expect(topicSpecs(topicNames('posthorn.', schedule)).map(({ name }) => name)).toEqual([
      ...['posthorn.message-created', 'posthorn.delivery-failed', 'posthorn.retry-due'],
      ...['posthorn.slow-lane', 'posthorn.dead-letters'],
      ...['posthorn.retry.5s', 'posthorn.retry.5m', 'posthorn.retry.30m'],
      ...['posthorn.retry.2h', 'posthorn.retry.5h', 'posthorn.retry.10h'],
    ]);
  });

  test('are shared by steps of equal delay', () => {
    const { parkedByDelayMs } = topicNames('', [1_000, 2_000, 1_000, 60_000, 60_000]);
    expect([...parkedByDelayMs]).toEqual([
      [1_000, 'retry.1s'],
      [2_000, 'retry.2s'],
      [60_000, 'retry.1m'],
    ]);
  });

  test('of two installations never meet', () => {
    const names = (prefix: string) =>
      topicSpecs(topicNames(prefix, schedule)).map(({ name }) => name);
    expect(names('a.').filter((name) => names('b.').includes(name))).toEqual([]);
  });

  test('keep a parked record for its delay and an outage of a week', () => {
    const specs = new Map(
      topicSpecs(topicNames('', schedule)).map(({ name, retentionMs }) => [name, retentionMs]),
    );
    for (const [delayMs, name] of topicNames('', schedule).parkedByDelayMs) {
      expect(specs.get(name)).toBeGreaterThanOrEqual(delayMs + 7 * DAY_MS);
    }
  });

  test('of an earlier schedule are found by their names, and nothing else is', () => {
    const existing = [
      'p.retry.5s',
      'p.retry.90m',
      'p.retry-due',
      'q.retry.5s',
      'p.retry.soon',
      'p.retry.',
    ];
    expect([...delayTopicsAmong('p.', existing)]).toEqual([
      [5_000, 'p.retry.5s'],
      [5_400_000, 'p.retry.90m'],
    ]);
    const { parkedByDelayMs } = topicNames('p.', schedule);
    expect(delayTopicsAmong('p.', parkedByDelayMs.values())).toEqual(parkedByDelayMs);
  });

  test('keep payloads, which lie in message-created only, for three days', () => {
    const created = topicSpecs(topicNames('', schedule)).find(
      ({ name }) => name === 'message-created',
    );
    expect(created?.retentionMs).toBe(3 * DAY_MS);
  });
});
