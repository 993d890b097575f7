import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import type { ConsumeOptions } from '../record-log.ts';
import { BatchHandler } from './batch-handler.ts';

const FIRST_WAIT_MS = 1;

let stopping: AbortController;
let batches: BatchHandler;
let errors: object[];
let handle: jest.Mock<ConsumeOptions['handle']>;

beforeEach(() => {
  stopping = new AbortController();
  errors = [];
  handle = jest.fn(() => Promise.resolve());
  const logger = { warn: () => undefined, error: (fields: object) => void errors.push(fields) };
  const { signal } = stopping;
  const options: ConsumeOptions = {
    groupId: 'group',
    topics: ['a'],
    handle: (record, isOurs) => handle(record, isOurs),
    logFieldsIn: ({ offset }) => ({ companyId: `comp_${offset}` }),
    inFlightLimits: { pauseAt: 10, resumeAt: 5 },
  };
  batches = new BatchHandler(options, {
    client: { pause: () => undefined, resume: () => undefined, paused: () => [] },
    keepTrying: createKeepTrying({ logger, signal, firstWaitMs: FIRST_WAIT_MS }),
    stopping: signal,
    nowMs: () => 0,
    logger,
    metrics: createKafkaMetrics(new Registry()),
  });
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
  batches.handle({
    batch: { topic: 'a', partition: 0, highWatermark: String(last + 1), messages },
    resolveOffset: () => undefined,
  });
}

async function untilIdle(): Promise<void> {
  while (!batches.isIdle()) await new Promise((resolve) => setTimeout(resolve, 1));
}

const committable = () => batches.offsets.uncommitted().map(({ offset }) => offset);

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
