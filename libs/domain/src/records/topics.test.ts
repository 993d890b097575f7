import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  DEFAULT_DEFERRAL_DELAYS,
  DEFAULT_RETRY_DELAYS,
  deferralDelaysSchema,
  retryScheduleSchema,
} from '../delivery/schedule.ts';
import {
  consumerGroups,
  type DelayTopic,
  delayTopicsAmong,
  judgeSetting,
  MAX_SEND_BYTES,
  TOPIC_SETTINGS,
  topicNames,
  type TopicSetting,
  type TopicSpec,
  topicSpecs,
  wantedSettings,
} from './topics.ts';

describe('topics', () => {
  const DAY_MS = 86_400_000;
  const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);
  const deferralDelays = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
  const namesOf = (prefix: string) => topicNames(prefix, schedule, deferralDelays);

  describe('topics', () => {
    test('are one for each purpose and one for each delay', () => {
      expect(topicSpecs(namesOf('posthorn.')).map(({ name }) => name)).toEqual([
        ...['posthorn.message-created', 'posthorn.delivery-failed', 'posthorn.retry-due'],
        ...['posthorn.slow-lane', 'posthorn.dead-letters', 'posthorn.exhausted-deliveries'],
        ...['posthorn.operator-events', 'posthorn.ingest-rejected'],
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
});

describe('topic settings', () => {
  const DAY_MS = 86_400_000;
  const specs = topicSpecs(topicNames('', [5_000, 36_000_000], [1_000]));
  const specOf = (name: string): TopicSpec => {
    const spec = specs.find((each) => each.name === name);
    if (!spec) throw new Error(name);
    return spec;
  };

  describe('the settings of a topic', () => {
    test('keep records for their time and lose none with one broker', () => {
      expect(wantedSettings({ spec: specOf('message-created'), replication: 3 })).toEqual({
        'cleanup.policy': 'delete',
        'retention.ms': String(3 * DAY_MS),
        'retention.bytes': '-1',
        'unclean.leader.election.enable': 'false',
        'min.insync.replicas': '2',
        'message.timestamp.type': 'LogAppendTime',
        'compression.type': 'uncompressed',
        'max.message.bytes': '1048588',
        'segment.ms': String(DAY_MS / 4),
      });
    });

    test.each([
      [1, '1'],
      [2, '1'],
      [3, '2'],
      [5, '4'],
    ])('let one of %d brokers be away', (replication, inSync) => {
      const wanted = wantedSettings({ spec: specOf('retry-due'), replication });
      expect(wanted['min.insync.replicas']).toBe(inSync);
    });

    test('allow every request that the producer makes', () => {
      const wanted = wantedSettings({ spec: specOf('retry-due'), replication: 3 });
      expect(Number(wanted['max.message.bytes'])).toBeGreaterThan(MAX_SEND_BYTES);
    });
  });

  describe('a setting', () => {
    test('that is as wanted is never judged', () => {
      const cases = fc.tuple(
        fc.constantFrom(...specs),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom(...TOPIC_SETTINGS),
      );
      fc.assert(
        fc.property(cases, ([spec, replication, setting]) => {
          const topic = { spec, replication };
          expect(judgeSetting(setting, wantedSettings(topic)[setting], topic)).toBeNull();
        }),
      );
    });

    const judge = (setting: TopicSetting, value: string, name: string, replication: number) =>
      judgeSetting(setting, value, { spec: specOf(name), replication })?.severity ?? 'fine';

    test.each<[TopicSetting, string, string, number]>([
      ['cleanup.policy', 'compact', 'retry.5s', 3],
      ['cleanup.policy', 'compact,delete', 'dead-letters', 3],
      // A delay topic that forgets its records before they are due, or before an outage of a week is over.
      ['retention.ms', '3600000', 'retry.10h', 3],
      ['retention.ms', String(6 * DAY_MS), 'retry.10h', 3],
      ['retention.ms', String(6 * DAY_MS), 'dead-letters', 3],
      ['retention.ms', String(6 * DAY_MS), 'exhausted-deliveries', 3],
      ['retention.ms', '0', 'message-created', 3],
      ['retention.bytes', '1073741824', 'message-created', 3],
      ['unclean.leader.election.enable', 'true', 'slow-lane', 2],
      ['min.insync.replicas', '1', 'retry-due', 3],
      ['min.insync.replicas', '2', 'retry-due', 1],
      ['max.message.bytes', '65536', 'message-created', 3],
    ])('is refused because records could be lost or stay: %s=%s of %s, %d copies', (...args) => {
      expect(judge(...args)).toBe('refuse');
    });

    test.each<[TopicSetting, string, string, number]>([
      ['retention.ms', '-1', 'message-created', 3],
      ['retention.ms', String(8 * DAY_MS), 'retry-due', 3],
      ['retention.ms', String(8 * DAY_MS), 'dead-letters', 3],
      ['retention.ms', String(8 * DAY_MS), 'exhausted-deliveries', 3],
      ['unclean.leader.election.enable', 'true', 'slow-lane', 1],
      ['min.insync.replicas', '3', 'retry-due', 3],
      ['min.insync.replicas', '2', 'retry-due', 4],
      ['message.timestamp.type', 'CreateTime', 'retry-due', 3],
      ['compression.type', 'producer', 'retry-due', 3],
      ['compression.type', 'zstd', 'retry-due', 3],
      ['max.message.bytes', '2097152', 'retry-due', 3],
      ['segment.ms', String(7 * DAY_MS), 'message-created', 3],
    ])('is warned of: %s=%s of %s, %d copies', (...args) => {
      expect(judge(...args)).toBe('warn');
    });

    test.each<[TopicSetting, string, string, number]>([
      ['retention.bytes', '-2', 'retry-due', 3],
      ['segment.ms', '3600000', 'retry-due', 3],
    ])('is fine although it is another one: %s=%s of %s, %d copies', (...args) => {
      expect(judge(...args)).toBe('fine');
    });
  });
});

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
