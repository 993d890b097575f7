import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { fetchedBatch } from '../../../../../test/support/samples/fetched-batch.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connect.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import type { GroupEvents } from './group-client.ts';
import { GroupConsumer } from './group-consumer.ts';
import { createProcessShare } from './partition-assignment.ts';

describe('group consumer', () => {
  let consumer: GroupConsumer;
  let events: GroupEvents;
  let begun: string[];
  let changes: number;
  /** The offsets that were committed, and what the broker does with a commit. */
  let committed: number[];
  let onCommit: () => Promise<void>;
  /** Whether the partition of each record was still this member's when it was handled. */
  let wereOurs: boolean[];
  let handling: () => Promise<void>;

  beforeEach(() => {
    [begun, changes, committed, wereOurs] = [[], 0, [], []];
    onCommit = handling = () => Promise.resolve();
    const logger = createLogger('test', 'silent');
    consumer = new GroupConsumer(
      {
        // Nothing connects.
        kafka: createKafkaClient('test', { brokers: ['127.0.0.1:1'] }, logger),
        logger,
        metrics: createKafkaMetrics(new Registry(), Date.now),
        nowMs: Date.now,
        onFatal: () => undefined,
        share: createProcessShare('process'),
        openGroupClient(_kafka, _options, given) {
          events = given;
          const nothing = () => Promise.resolve();
          return {
            start: nothing,
            leave: nothing,
            pause: () => undefined,
            resume: () => undefined,
            paused: () => [],
            seek: () => undefined,
          };
        },
      },
      {
        groupId: 'group',
        topics: ['a'],
        inFlightLimits: { pauseAt: 10, resumeAt: 5 },
        async handle({ offset }, isOurs) {
          begun.push(String(offset));
          await handling();
          wereOurs.push(isOurs());
        },
        onRebalancing: () => (changes += 1),
      },
    );
    events.onJoined({ a: [0] });
  });

  /** Returns the offset that the client reads next after it has handed over this one. */
  function handOver(offset: number): number {
    let next = offset;
    const onResolved = (resolved: string): void => {
      next = Number(resolved) + 1;
    };
    events.onBatch(fetchedBatch({ offsets: [offset], onResolved }), (commits) => {
      committed.push(...commits.map((commit) => commit.offset));
      return onCommit();
    });
    return next;
  }

  describe('a member whose group is about to change', () => {
    test('reports it, and begins nothing until it has joined again', async () => {
      expect(handOver(5)).toBe(6);
      await new Promise(setImmediate);
      await events.onRebalancing();
      expect(handOver(6)).toBe(6);
      events.onJoined({ a: [0] });
      expect(handOver(6)).toBe(7);
      expect([begun, changes]).toEqual([['5', '6'], 1]);
    });

    test('continues when the group does not change after all', async () => {
      await events.onRebalancing();
      expect(handOver(5)).toBe(5);
      events.onConfirmed();
      expect(handOver(5)).toBe(6);
      expect(begun).toEqual(['5']);
    });

    test('commits the finished records before it joins again, so that nobody handles them again', async () => {
      handOver(5);
      await new Promise(setImmediate);
      await events.onRebalancing();
      expect(committed).toEqual([6]);
    });

    test('joins again although the broker refuses the commit', async () => {
      onCommit = () => Promise.reject(new Error('the generation is not valid'));
      handOver(5);
      await new Promise(setImmediate);
      await events.onRebalancing();
      expect(committed).not.toEqual([]);
    });

    test('joins again after a second although the broker answers no commit', async () => {
      onCommit = () => new Promise(() => undefined);
      handOver(5);
      await new Promise(setImmediate);
      await events.onRebalancing();
      expect(committed).toEqual([6]);
    });
  });

  describe('a record', () => {
    let finish: () => void = () => undefined;

    beforeEach(() => {
      handling = () => new Promise((resolve) => (finish = resolve));
      handOver(5);
    });

    async function whetherItWasOurs(): Promise<boolean[]> {
      finish();
      await new Promise(setImmediate);
      return wereOurs;
    }

    test('learns that its partition has gone to another member', async () => {
      events.onJoined({ a: [1] });
      expect(await whetherItWasOurs()).toEqual([false]);
    });

    test('learns that its consumer was replaced', async () => {
      await consumer.discard();
      expect(await whetherItWasOurs()).toEqual([false]);
    });

    test('stays with a member that keeps its partition', async () => {
      await events.onRebalancing();
      events.onJoined({ a: [0, 1] });
      expect(await whetherItWasOurs()).toEqual([true]);
    });
  });
});
