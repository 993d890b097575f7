import { describe, expect, test } from '@jest/globals';
import mongoose from 'mongoose';
import { StoreUnavailableError } from '../../service/errors.ts';
import { asStoreError, withoutOptionsOf } from './connect.ts';

const { MongoDriverError, MongoServerError } = mongoose.mongo;

/** As the pool of the driver throws it; its class is not exported. */
function poolError(name: string): Error {
  return Object.defineProperty(new MongoDriverError('timed out'), 'name', { value: name });
}

describe('an error of MongoDB', () => {
  test.each([
    ['a pool without a free connection', poolError('MongoWaitQueueTimeoutError')],
    ['a read on a server that steps down', new MongoServerError({ code: 11_602 })],
    ['a read on a server that is no longer the primary', new MongoServerError({ code: 10_107 })],
  ])('counts as unavailable: %s', (_what, error) => {
    expect(asStoreError(error)).toBeInstanceOf(StoreUnavailableError);
  });

  test.each([
    ['a refused document', new MongoServerError({ code: 121 })],
    ['a fault of ours', new TypeError('x is undefined')],
    ['no error at all', 'text'],
  ])('is returned as it is: %s', (_what, error) => {
    expect(asStoreError(error)).toBe(error);
  });
});

test('an option in the URL wins over ours, however it is written', () => {
  const ours = { maxPoolSize: 20, socketTimeoutMS: 20_000 };
  expect(withoutOptionsOf('mongodb://a/b?maxpoolsize=50&tls=true', ours)).toEqual({
    socketTimeoutMS: 20_000,
  });
  expect(withoutOptionsOf('mongodb://a/b', ours)).toEqual(ours);
});
