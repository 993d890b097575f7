import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { READY_WHEN_WRITTEN } from '../backlog/ready-records.ts';
import { createUnreadRecords } from '../backlog/unread-records.ts';
import { createKafkaMetrics, type FinishedRecords } from '../kafka-metrics.ts';
import { createOwnedPartitions, type OwnedPartitions } from '../offsets/owned-partitions.ts';
import { createPausedPartitions } from '../offsets/paused-partitions.ts';
import { handleBatch, type BatchHandling } from './handle-batch.ts';

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
