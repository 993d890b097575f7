import { expect, test } from '@jest/globals';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import mongoose from 'mongoose';
import { ApiError, isFault } from './api-error.ts';

const { MongoServerError } = mongoose.mongo;

test.each([
  ['a bug', new TypeError('undefined is no function'), true],
  ['a secret that cannot be read', new Error('cannot be decrypted'), true],
  ['a command that MongoDB does not understand', new MongoServerError({ code: 9 }), true],
  ['a login that MongoDB refuses', new MongoServerError({ code: 13 }), false],
  ['a full disk', new MongoServerError({ code: 14_031 }), false],
  ['MongoDB that is away', new StoreUnavailableError('no primary'), false],
  ['a wrong request', new ApiError('not_found'), false],
])('%s is a fault of ours or not', (_what, error, isOurs) => {
  expect(isFault(error)).toBe(isOurs);
});
