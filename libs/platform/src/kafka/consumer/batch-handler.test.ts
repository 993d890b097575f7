import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { fetchedBatch } from '../../../../../test/support/samples/fetched-batch.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { createKafkaMetrics } from '../kafka-metrics.ts';
import { type ConsumeOptions, GiveBackError } from '../record-log.ts';
import { BatchHandler } from './batch-handler.ts';

const FIRST_WAIT_MS = 1;

interface Span {
  from: number;
  to: number;
}

let stopping: AbortController;
let batches: BatchHandler;
let errors: object[];
/** Where the client reads on after. */
let resolved: string;
/** Where the client was told to read on. */
let soughtTo: number;
let handle: jest.Mock<ConsumeOptions['handle']>;

/** The partitions that were resumed, in order. */
let resumed: number[];

beforeEach(() => {
  open({ pauseAt: 10, resumeAt: 5 });
});

function open(inFlightLimits: ConsumeOptions['inFlightLimits']): void {
  stopping = new AbortController();
  [errors, resumed] = [[], []];
  handle = jest.fn(() => Promise.resolve());
  const logger = { warn: () => undefined, error: (fields: object) => void errors.push(fields) };
  const { signal } = stopping;
  const options: ConsumeOptions = {
    groupId: 'group',
    topics: ['a'],
    handle: (record, isOurs) => handle(record, isOurs),
    logFieldsIn: ({ offset }) => ({ companyId: `comp_${offset}` }),
    inFlightLimits,
  };
  batches = new BatchHandler(options, {
    client: {
      pause: () => undefined,
      resume: (selection) => resumed.push(...selection.flatMap(({ partitions }) => partitions)),
      paused: () => [],
      seek: ({ offset }) => (soughtTo = offset),
    },
    keepTrying: createKeepTrying({ logger, signal, firstWaitMs: FIRST_WAIT_MS }),
    stopping: signal,
    nowMs: () => 0,
    logger,
    metrics: createKafkaMetrics(new Registry(), Date.now),
  });
}

/** Hands over records with these offsets of one partition. */
function read(...recordOffsets: number[]): void {
  readBatch(recordOffsets);
}

/** Hands over a batch that begins and ends where its records do, unless given. */
function readBatch(offsets: number[], span: Partial<Span> = {}): void {
  const onResolved = (offset: string): void => {
    resolved = offset;
  };
  batches.handle(fetchedBatch({ offsets, ...span, onResolved }));
}

async function untilIdle(): Promise<void> {
  while (!batches.isIdle()) await new Promise(setImmediate);
}

const committable = () => batches.offsets.uncommitted().map(({ offset }) => offset);

describe('a record', () => {
  test('may be committed when it was handled', async () => {
    read(7);
    await untilIdle();
    expect(committable()).toEqual([8]);
  });

  test('is committed together with the end of its transaction', async () => {
    readBatch([7], { to: 8 });
    expect(resolved).toBe('8');
    await untilIdle();
    expect(committable()).toEqual([9]);
    // The end of another one, and three records that were aborted.
    readBatch([], { from: 9, to: 12 });
    expect([committable(), resolved]).toEqual([[13], '12']);
    expect(batches.ready({ a: [0] }, 0).get('a')?.records).toBe(0);
  });

  test('that is in work keeps the end of a transaction behind it from the commit', async () => {
    const done = Promise.withResolvers<undefined>();
    handle.mockReturnValueOnce(done.promise);
    read(7);
    readBatch([], { from: 8, to: 8 });
    expect(committable()).toEqual([]);
    done.resolve(undefined);
    await untilIdle();
    expect(committable()).toEqual([9]);
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

describe('records that are given back', () => {
  const readAgain = { pauseMs: 60_000, mayReadOn: () => Promise.resolve(true) };
  const giveBack = () => Promise.reject(new GiveBackError('the company is suspended', readAgain));

  const handled = () => handle.mock.calls.map(([{ offset }]) => offset);

  afterEach(() => {
    batches.close();
  });

  test('are read again from the first that is not done, and held by nobody meanwhile', async () => {
    handle.mockResolvedValueOnce(undefined).mockImplementation(giveBack);
    read(7, 8, 9);
    await untilIdle();
    expect([soughtTo, batches.offsets.inFlightIn('a'), errors]).toEqual([8, 0, []]);
    expect(batches.ready({ a: [0] }, 1_000).get('a')).toEqual({ records: 2, oldestMs: 1_000 });
    handle.mockResolvedValue(undefined);
    read(8, 9);
    await untilIdle();
    expect(committable()).toEqual([10]);
    expect(handled()).toEqual([7, 8, 9, 8, 9]);
  });

  test('are not passed by a fetch that was under way', async () => {
    handle.mockImplementationOnce(giveBack);
    read(7);
    await untilIdle();
    read(8, 9);
    expect([handled(), committable()]).toEqual([[7], []]);
    read(7, 8);
    await untilIdle();
    expect(committable()).toEqual([9]);
  });

  test('belong to nobody while one of them is still in work', async () => {
    const done = Promise.withResolvers<undefined>();
    handle.mockReturnValueOnce(done.promise).mockImplementationOnce(giveBack);
    read(7, 8);
    await eventually('it is given back', () => soughtTo === 7);
    expect(handle.mock.calls[0]?.[1]()).toBe(false);
    done.resolve(undefined);
    await untilIdle();
    expect(committable()).toEqual([]);
  });
});

describe('the partitions of a topic that share what may be in flight', () => {
  const offsets = Array.from({ length: 400 }, (_, offset) => offset);
  let ends: (() => void)[];

  function readAll(partition: number): void {
    batches.handle(fetchedBatch({ partition, offsets, onResolved: () => undefined }));
  }

  const inFlight = (partition: number): number =>
    batches.offsets.inFlightOf({ topic: 'a', partition });

  beforeEach(() => {
    open({ pauseAt: 200, resumeAt: 100, isShared: true });
    ends = [];
    handle.mockImplementation(() => new Promise<void>((resolve) => void ends.push(resolve)));
  });

  async function end(records: number): Promise<void> {
    for (const each of ends.splice(0, records)) each();
    await new Promise(setImmediate);
  }

  test('have all of it while they are alone', () => {
    readAll(0);
    expect(inFlight(0)).toBe(200);
  });

  test('do not wait for one of them that has more than its part', async () => {
    for (const partition of [0, 1, 2, 3]) readAll(partition);
    expect([0, 1, 2, 3].map(inFlight)).toEqual([200, 0, 0, 0]);
    await end(100);
    // Not the first one, which has waited for as long and has 100 in flight.
    expect(resumed).toEqual([1]);
    readAll(1);
    // A third of 200: the last two wait too.
    expect([0, 1, 2, 3].map(inFlight)).toEqual([100, 67, 0, 0]);
  });
});
