import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import kafkajs from 'kafkajs';
import mongoose from 'mongoose';
import { AssertionError } from 'node:assert';
import { z } from 'zod';
import { StartupError, StoreUnavailableError } from '../service/errors.ts';
import { createKeepTrying, isOutage, type KeepTrying, StoppedError } from './keep-trying.ts';
import { TimeoutError } from './pause.ts';

describe('keep trying', () => {
  let stopping: AbortController;
  let logged: [object, string][];
  let nowMs: number;
  let keepTrying: KeepTrying;

  const logger = { warn: (fields: object, text: string) => void logged.push([fields, text]) };

  function create(firstWaitMs = 1, maxWaitMs = firstWaitMs): KeepTrying {
    const { signal } = stopping;
    return createKeepTrying({ logger, signal, firstWaitMs, maxWaitMs, monotonicMs: () => nowMs });
  }

  beforeEach(() => {
    stopping = new AbortController();
    [logged, nowMs] = [[], 0];
    keepTrying = create();
  });

  /** Fails this many times, then succeeds. */
  function failing(times: number, error = new Error('away')) {
    let calls = 0;
    return jest.fn(() => {
      calls += 1;
      return calls > times ? Promise.resolve(`call ${calls}`) : Promise.reject(error);
    });
  }

  describe('keepTrying', () => {
    test('returns the result of a step that succeeds at once, and logs nothing', async () => {
      expect(await keepTrying('publish', failing(0))).toBe('call 1');
      expect(logged).toEqual([]);
    });

    test('repeats a step until it succeeds', async () => {
      expect(await keepTrying('publish', failing(3))).toBe('call 4');
    });

    test('repeats a step that throws before it returns a promise', async () => {
      let calls = 0;
      const step = () => {
        calls += 1;
        if (calls === 1) throw new Error('at once');
        return Promise.resolve(calls);
      };
      expect(await keepTrying('publish', step)).toBe(2);
    });

    test.each([new TypeError('undefined is no function'), new RangeError('too long')])(
      'throws what is no outage at once: %s',
      async (error) => {
        const step = failing(9, error);
        await expect(keepTrying('publish', step)).rejects.toBe(error);
        expect(step).toHaveBeenCalledTimes(1);
      },
    );
  });

  describe('the log of keepTrying', () => {
    test('has the first failure, with its error and the fields of the caller', async () => {
      await keepTrying('publish failures', failing(1), () => ({ size: 7 }));
      expect(logged).toEqual([
        [
          { err: new Error('away'), size: 7, failures: 1, unlogged: 0 },
          'failed to publish failures, retrying',
        ],
      ]);
    });

    test('has no further failure of the same purpose for 10 seconds', async () => {
      await Promise.all([keepTrying('publish', failing(5)), keepTrying('publish', failing(5))]);
      expect(logged).toHaveLength(1);
      nowMs = 9_999;
      await keepTrying('publish', failing(1));
      expect(logged).toHaveLength(1);
      nowMs = 10_000;
      await keepTrying('publish', failing(1));
      expect(logged).toHaveLength(2);
      expect(logged[1]?.[0]).toMatchObject({ failures: 1, unlogged: 10 });
    });

    test('has the failures of each purpose', async () => {
      await Promise.all([keepTrying('publish', failing(2)), keepTrying('record', failing(2))]);
      expect(logged.map(([, text]) => text)).toEqual([
        'failed to publish, retrying',
        'failed to record, retrying',
      ]);
    });
  });

  describe('a stop', () => {
    test('ends a wait at once, with StoppedError', async () => {
      keepTrying = create(3_600_000);
      const step = failing(9);
      const trying = keepTrying('publish', step);
      setImmediate(() => {
        stopping.abort();
      });
      await expect(trying).rejects.toThrow(StoppedError);
      await expect(trying).rejects.toThrow('stopped before it could publish: away');
      expect(step).toHaveBeenCalledTimes(1);
    });

    test('lets a step run that begins after it, and repeats it no more', async () => {
      stopping.abort();
      expect(await keepTrying('publish', failing(0))).toBe('call 1');
      const step = failing(1);
      await expect(keepTrying('publish', step)).rejects.toThrow(StoppedError);
      expect(step).toHaveBeenCalledTimes(1);
    });

    test('does not hide what is no outage', async () => {
      stopping.abort();
      const error = new TypeError('undefined is no function');
      await expect(keepTrying('publish', failing(1, error))).rejects.toBe(error);
    });

    test('of an inner step is not repeated by an outer one', async () => {
      const outer = createKeepTrying({ logger, signal: new AbortController().signal });
      stopping.abort();
      const inner = jest.fn(() => keepTrying('publish', failing(1)));
      await expect(outer('handle a record', inner)).rejects.toThrow(StoppedError);
      expect(inner).toHaveBeenCalledTimes(1);
    });
  });
});

const { mongo } = mongoose;

/** Redis after its start; ioredis does not declare the type of its error. */
const loading = Object.assign(new Error('LOADING Redis is loading the dataset in memory'), {
  name: 'ReplyError',
});

const serverError = (code: number) => new mongo.MongoServerError({ message: 'refused', code });

describe('an outage', () => {
  test.each<[string, unknown]>([
    ['a lost connection to MongoDB', new mongo.MongoNetworkError('connection closed')],
    ['a MongoDB timeout', new mongo.MongoNetworkTimeoutError('timed out')],
    ['MongoDB without a primary', serverError(10_107)],
    ['a primary that steps down', serverError(189)],
    ['a write that exceeds its time', serverError(50)],
    ['a MongoDB disk that is full', serverError(14_031)],
    ['a race of two upserts', serverError(11_000)],
    ['a lost connection to Kafka', new kafkajs.KafkaJSConnectionError('closed')],
    ['a Kafka request that timed out', new kafkajs.KafkaJSRequestTimeoutError('timed out')],
    [
      'Kafka away for longer than kafkajs retries',
      new kafkajs.KafkaJSNumberOfRetriesExceeded(new Error('away'), {
        retryCount: 3,
        retryTime: 1_000,
      }),
    ],
    ['Redis away', loading],
    ['a refused connection', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })],
    ['a store that cannot be used now', new StoreUnavailableError('away')],
    ['a step without an answer', new TimeoutError('no answer')],
    ['an error that nobody knows', new Error('?')],
    ['something thrown that is no error', 'away'],
  ])('is %s', (_what, error) => {
    expect(isOutage(error)).toBe(true);
  });
});

describe('no outage', () => {
  test.each<[string, unknown]>([
    ['a TypeError', new TypeError('undefined is no function')],
    ['a RangeError', new RangeError('too long')],
    ['a SyntaxError', new SyntaxError('no JSON')],
    ['a failed assertion', new AssertionError({ message: 'never' })],
    ['data that a schema refuses', z.string().safeParse(1).error],
    ['a document that cannot be written as BSON', new mongo.BSON.BSONError('circular')],
    ['an argument that the driver refuses', new mongo.MongoInvalidArgumentError('no filter')],
    ['a document that MongoDB refuses', serverError(121)],
    ['a command that MongoDB refuses', serverError(9)],
    ['a start that a person must mend', new StartupError('wrong address')],
    ['a stop', new StoppedError('stopped')],
  ])('is %s', (_what, error) => {
    expect(isOutage(error)).toBe(false);
  });
});
