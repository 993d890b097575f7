import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connect.ts';
import type { GroupEvents } from '../group-client.ts';
import { createKafkaMetrics, type FinishedRecords } from '../kafka-metrics.ts';
import { createOwnedPartitions, type OwnedPartitions } from '../offsets/owned-partitions.ts';
import { createPausedPartitions } from '../offsets/paused-partitions.ts';
import { createUnreadRecords, READY_WHEN_WRITTEN } from '../unread-records.ts';
import {
  type BatchHandling,
  createGroupConsumer,
  type GroupConsumer,
  handleBatch,
} from './group-consumer.ts';
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
    consumer = createGroupConsumer(
      {
        // Nothing connects.
        kafka: createKafkaClient('test', { brokers: ['127.0.0.1:1'] }, logger),
        logger,
        metrics: createKafkaMetrics(new Registry()),
        onFatal: () => undefined,
        share: createProcessShare('process'),
        openGroupClient(_options, given) {
          events = given;
          const nothing = () => Promise.resolve();
          return {
            start: nothing,
            leave: nothing,
            pause: () => undefined,
            resume: () => undefined,
            paused: () => [],
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
    const messages = [
      { offset: String(offset), timestamp: '1000', key: null, value: null, headers: {} },
    ];
    events.onBatch(
      {
        batch: { topic: 'a', partition: 0, highWatermark: String(offset + 1), messages },
        resolveOffset: (resolved) => (next = Number(resolved) + 1),
      },
      (commits) => {
        committed.push(...commits.map((commit) => commit.offset));
        return onCommit();
      },
    );
    return next;
  }

  describe('a member whose group is about to change', () => {
    test('says so, and begins nothing until it has joined again', async () => {
      expect(handOver(5)).toBe(6);
      await new Promise(setImmediate);
      await events.onRebalancing();
      expect(handOver(6)).toBe(6);
      events.onJoined({ a: [0] });
      expect(handOver(6)).toBe(7);
      expect([begun, changes]).toEqual([['5', '6'], 1]);
    });

    test('goes on when the group turns out not to change', async () => {
      await events.onRebalancing();
      expect(handOver(5)).toBe(5);
      events.onConfirmed();
      expect(handOver(5)).toBe(6);
      expect(begun).toEqual(['5']);
    });

    test('commits what is finished before it joins again, so that nobody does it again', async () => {
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

describe('handle batch', () => {
  const FIRST_WAIT_MS = 1;

  let stopping: AbortController;
  let offsets: OwnedPartitions;
  let errors: object[];
  let finished: FinishedRecords;
  let handling: BatchHandling;
  let handle: jest.Mock<BatchHandling['handle']>;

  beforeEach(() => {
    stopping = new AbortController();
    offsets = createOwnedPartitions(() => 0);
    errors = [];
    finished = { records: 0 };
    handle = jest.fn(() => Promise.resolve());
    const logger = {
      warn: () => undefined,
      error: (fields: object) => void errors.push(fields),
    };
    const { signal } = stopping;
    handling = {
      handle: (record, isOurs) => handle(record, isOurs),
      logFieldsIn: ({ offset }) => ({ companyId: `comp_${offset}` }),
      delayMs: undefined,
      inFlightLimits: { pauseAt: 10, resumeAt: 5 },
      mayRead: undefined,
      offsets,
      unread: createUnreadRecords(() => false),
      readiness: READY_WHEN_WRITTEN,
      finished: new Map([['a', finished]]),
      running: new Set(),
      pausedPartitions: createPausedPartitions({
        pause: () => undefined,
        resume: () => undefined,
        paused: () => [],
      }),
      keepTrying: createKeepTrying({ logger, signal, firstWaitMs: FIRST_WAIT_MS }),
      logger,
      metrics: createKafkaMetrics(new Registry()),
      stopping: signal,
    };
  });

  /** Hands over records with these offsets of one partition. */
  function read(...recordOffsets: number[]): void {
    const messages = recordOffsets.map((offset) => ({
      offset: String(offset),
      timestamp: '1000',
      key: null,
      value: null,
    }));
    const last = recordOffsets.at(-1) ?? 0;
    handleBatch(handling, {
      batch: { topic: 'a', partition: 0, highWatermark: String(last + 1), messages },
      resolveOffset: () => undefined,
    });
  }

  async function untilIdle(): Promise<void> {
    while (offsets.inFlightIn('a') > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  const committable = () => offsets.uncommitted().map(({ offset }) => offset);

  describe('a record', () => {
    test('may be committed when it was handled', async () => {
      read(7);
      await untilIdle();
      expect(committable()).toEqual([8]);
    });

    test('is handled again after an outage', async () => {
      handle.mockRejectedValueOnce(new Error('MongoDB is away'));
      read(7);
      await untilIdle();
      expect(handle).toHaveBeenCalledTimes(2);
      expect(committable()).toEqual([8]);
    });

    test('is not handled again after a TypeError, and is neither committed nor passed', async () => {
      const error = new TypeError('undefined is no function');
      handle.mockRejectedValueOnce(error);
      read(7, 8);
      await untilIdle();
      expect(handle).toHaveBeenCalledTimes(2);
      expect(committable()).toEqual([]);
      expect(errors).toEqual([
        { err: error, topic: 'a', partition: 0, offset: 7, key: '', companyId: 'comp_7' },
      ]);
    });

    test('is left uncommitted at once when a stop comes during an outage', async () => {
      handle.mockImplementation(() => {
        stopping.abort();
        return Promise.reject(new Error('Kafka is away'));
      });
      read(7);
      await untilIdle();
      expect(handle).toHaveBeenCalledTimes(1);
      expect([committable(), errors]).toEqual([[], []]);
    });

    test('is left uncommitted when a stop has ended the retries of its handler', async () => {
      handle.mockRejectedValueOnce(new StoppedError('stopped before it could publish failures'));
      read(7);
      await untilIdle();
      expect(handle).toHaveBeenCalledTimes(1);
      expect([committable(), errors]).toEqual([[], []]);
    });

    test('that was begun before a stop may still be committed', async () => {
      let end = (): void => undefined;
      handle.mockReturnValueOnce(new Promise((resolve) => (end = resolve)));
      read(7);
      stopping.abort();
      end();
      await untilIdle();
      expect(committable()).toEqual([8]);
    });
  });
});
