import { describe, expect, test } from '@jest/globals';
import { planTopicChanges } from './plan-topic-changes.ts';
import type { Drift } from './topic-drift.ts';

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
