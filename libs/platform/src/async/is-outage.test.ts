import { describe, expect, test } from '@jest/globals';
import kafkajs from 'kafkajs';
import mongoose from 'mongoose';
import { AssertionError } from 'node:assert';
import { z } from 'zod';
import { StartupError, StoreUnavailableError } from '../service/errors.ts';
import { isOutage } from './is-outage.ts';
import { StoppedError } from './keep-trying.ts';
import { TimeoutError } from './with-timeout.ts';

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
