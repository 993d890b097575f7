import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  judgeSetting,
  MAX_SEND_BYTES,
  TOPIC_SETTINGS,
  wantedSettings,
  type TopicSetting,
} from './topic-settings.ts';
import { topicNames, topicSpecs, type TopicSpec } from './topics.ts';

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
    ['retention.ms', '0', 'message-created', 3],
    ['retention.bytes', '1073741824', 'message-created', 3],
    ['unclean.leader.election.enable', 'true', 'slow-lane', 2],
    ['min.insync.replicas', '1', 'retry-due', 3],
    ['min.insync.replicas', '2', 'retry-due', 1],
    ['compression.type', 'lz4', 'retry-due', 3],
    ['compression.type', 'zstd', 'retry-due', 3],
    ['max.message.bytes', '65536', 'message-created', 3],
  ])('is refused because records could be lost or stay: %s=%s of %s, %d copies', (...args) => {
    expect(judge(...args)).toBe('refuse');
  });

  test.each<[TopicSetting, string, string, number]>([
    ['retention.ms', '-1', 'message-created', 3],
    ['retention.ms', String(8 * DAY_MS), 'retry-due', 3],
    ['retention.ms', String(8 * DAY_MS), 'dead-letters', 3],
    ['unclean.leader.election.enable', 'true', 'slow-lane', 1],
    ['min.insync.replicas', '3', 'retry-due', 3],
    ['min.insync.replicas', '2', 'retry-due', 4],
    ['message.timestamp.type', 'CreateTime', 'retry-due', 3],
    ['compression.type', 'producer', 'retry-due', 3],
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
