import { describe, expect, test } from '@jest/globals';
import {
  type Drift,
  findCopyDrift,
  findLayoutDrift,
  findSettingDrift,
  findUnpinned,
  type ObservedTopic,
  planTopicChanges,
} from './topic-drift.ts';
import { topicNames, topicSpecs, topicSpecsAmong, wantedSettings } from './topics.ts';

const names = topicNames('p.', [5_000], [1_000]);
const specs = topicSpecs(names);
const LAYOUT = { partitions: 12, replication: 3 };

/** Every topic as create-topics makes it, with changes to one of them. */
function observed(
  changedTopic = '',
  settings: Record<string, string> = {},
  layout: Partial<ObservedTopic> = {},
): ObservedTopic[] {
  return specs.map((spec) => {
    const isChanged = spec.name === changedTopic;
    const wanted = wantedSettings({ spec, replication: LAYOUT.replication });
    const values = Object.entries({ ...wanted, ...(isChanged && settings) });
    return {
      name: spec.name,
      ...LAYOUT,
      settings: new Map(values.map(([name, value]) => [name, { value, isPinned: true }])),
      ...(isChanged && layout),
    };
  });
}

describe('topics', () => {
  test('topics as they were created do not differ from their contract', () => {
    expect(findSettingDrift(specs, observed())).toEqual([]);
    expect(findUnpinned(specs, observed())).toEqual([]);
    expect(findLayoutDrift(names, observed(), LAYOUT)).toEqual([]);
  });

  test('that do not exist, or whose settings are unknown, are left out', () => {
    const blank = observed().map((topic) => ({ ...topic, settings: new Map() }));
    expect(findSettingDrift(specs, [])).toEqual([]);
    expect(findSettingDrift(specs, blank)).toEqual([]);
    expect(findUnpinned(specs, blank)).toEqual([]);
  });

  test('show each difference with what it means and what mends it', () => {
    const drifts = findSettingDrift(specs, observed('p.retry.5s', { 'retention.ms': '60000' }));
    expect(drifts).toEqual([
      {
        topic: 'p.retry.5s',
        setting: 'retention.ms',
        value: '60000',
        wanted: '604805000',
        severity: 'refuse',
        meaning: 'records are deleted before an outage of the promised length is over',
        remedy: 'apply',
      },
    ]);
  });

  test.each([
    ['retention.ms', '-1'],
    ['retention.ms', '999999999999'],
    ['min.insync.replicas', '3'],
  ])('need force where records or protection would be given up: %s=%s', (setting, value) => {
    const drifts = findSettingDrift(specs, observed('p.slow-lane', { [setting]: value }));
    expect(drifts.map(({ remedy }) => remedy)).toEqual(['apply-force']);
  });

  test('of earlier delays have a contract too', () => {
    const all = topicSpecsAmong('p.', names, ['p.retry.90m', 'p.retry.5s', 'other']);
    expect(all.map(({ name }) => name)).toEqual([...specs.map(({ name }) => name), 'p.retry.90m']);
    expect(all.at(-1)?.retentionMs).toBe(5_400_000 + 7 * 86_400_000);
  });

  test('topics with a wanted value that is only a default of the brokers are not pinned', () => {
    const topics = observed().map(({ settings, ...topic }) => ({
      ...topic,
      settings: new Map(
        [...settings].map(([name, { value }]) => [
          name,
          { value, isPinned: name !== 'cleanup.policy' },
        ]),
      ),
    }));
    const unpinned = findUnpinned(specs, topics);
    expect(unpinned).toHaveLength(specs.length);
    expect(unpinned[0]).toEqual({
      topic: specs[0]?.name,
      setting: 'cleanup.policy',
      value: 'delete',
    });
  });
});

describe('the layout of topics', () => {
  const drifts = (topic: string, layout: Partial<ObservedTopic>) =>
    findLayoutDrift(names, observed(topic, {}, layout), LAYOUT).map(
      ({ topic: name, setting, value, severity, remedy }) =>
        [name, setting, value, severity, remedy].join(' '),
    );

  test('warns of another number of partitions than a new topic would get', () => {
    expect(drifts('p.retry.5s', { partitions: 6 })).toEqual([
      'p.retry.5s partitions 6 warn add-partitions',
    ]);
  });

  test('is refused where topics that are read together have different numbers', () => {
    expect(drifts('p.slow-lane', { partitions: 24 })).toEqual([
      'p.message-created partitions 12 refuse add-partitions',
      'p.retry-due partitions 12 refuse add-partitions',
      'p.slow-lane partitions 24 refuse add-partitions',
    ]);
  });

  test('warns of fewer copies, and accepts more', () => {
    expect(drifts('p.retry-due', { replication: 2 })).toEqual([
      'p.retry-due replication 2 warn reassign',
    ]);
    expect(drifts('p.retry-due', { replication: 5 })).toEqual([]);
  });

  test('is refused where a topic has the only copy of its records, and others have more', () => {
    expect(drifts('p.retry-due', { replication: 1 })).toEqual([
      'p.retry-due replication 1 refuse reassign',
    ]);
    const alone = observed().map((topic) => ({ ...topic, replication: 1 }));
    const severities = findLayoutDrift(names, alone, LAYOUT).map(({ severity }) => severity);
    expect(new Set(severities)).toEqual(new Set(['warn']));
  });

  test('is found without settings where topics differ in their copies', () => {
    const found = (replication: number) =>
      findCopyDrift(observed('p.retry-due', {}, { replication })).map(
        ({ topic, wanted, severity }) => [topic, wanted, severity].join(' '),
      );
    expect([1, 2, 3].map(found)).toEqual([['p.retry-due 3 refuse'], ['p.retry-due 3 warn'], []]);
    expect(findCopyDrift([])).toEqual([]);
  });
});

const drift = (changes: Partial<Drift>): Drift => ({
  topic: 'a',
  setting: 'cleanup.policy',
  value: 'compact',
  wanted: 'delete',
  severity: 'refuse',
  meaning: 'why',
  remedy: 'apply',
  ...changes,
});

const shortened = drift({ setting: 'retention.ms', wanted: '5', remedy: 'apply-force' });
const partitions = drift({ setting: 'partitions', wanted: '24', remedy: 'add-partitions' });
const copies = drift({ setting: 'replication', wanted: '3', remedy: 'reassign' });

describe('the changes of topics', () => {
  test('are collected by topic, with the settings that are not pinned', () => {
    const plan = planTopicChanges(
      [drift({}), drift({ topic: 'b' }), drift({ setting: 'retention.bytes', wanted: '-1' })],
      [{ topic: 'b', setting: 'segment.ms', value: '7' }],
      { force: false },
    );
    expect(plan).toEqual({
      changes: [
        { topic: 'a', settings: { 'cleanup.policy': 'delete', 'retention.bytes': '-1' } },
        { topic: 'b', settings: { 'cleanup.policy': 'delete', 'segment.ms': '7' } },
      ],
      held: [],
      byHand: [],
    });
  });

  test('shorten no retention without force', () => {
    expect(planTopicChanges([shortened], [], { force: false })).toEqual({
      changes: [],
      held: [shortened],
      byHand: [],
    });
    expect(planTopicChanges([shortened], [], { force: true })).toEqual({
      changes: [{ topic: 'a', settings: { 'retention.ms': '5' } }],
      held: [],
      byHand: [],
    });
  });

  test('never touch partitions and copies, with force either', () => {
    expect(planTopicChanges([partitions, copies], [], { force: true })).toEqual({
      changes: [],
      held: [],
      byHand: [partitions, copies],
    });
  });
});
