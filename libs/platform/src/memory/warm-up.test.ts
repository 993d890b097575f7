import { beforeEach, describe, expect, test } from '@jest/globals';
import { warmUp } from './warm-up.ts';

let loaded: number[];
let logged: object[];

beforeEach(() => {
  [loaded, logged] = [[], []];
});

type WarmUp = Parameters<typeof warmUp<number>>[0];

const warm = (changes: Partial<WarmUp>): Promise<void> =>
  warmUp<number>({
    name: 'numbers',
    whenFollowed: Promise.resolve(),
    read: () => Promise.resolve(Array.from({ length: 100 }, (_, n) => n)),
    load: (n) => Promise.resolve(loaded.push(n)),
    isFull: () => false,
    logger: { info: (fields: object) => void logged.push(fields) },
    ...changes,
  });

describe('the loading of what was used last', () => {
  test('loads each once, the latest first, after changes are followed', async () => {
    const followed = Promise.withResolvers<undefined>();
    const warming = warm({ whenFollowed: followed.promise });
    await Promise.resolve();
    expect(loaded).toEqual([]);
    followed.resolve(undefined);
    await warming;
    expect(loaded).toEqual(Array.from({ length: 100 }, (_, n) => n));
    expect(logged).toEqual([{ cache: 'numbers', loaded: 100 }]);
  });

  test('ends when the cache has no more room', async () => {
    await warm({ isFull: () => loaded.length >= 10 });
    expect(loaded).toHaveLength(10);
  });

  test('ends without an error when time is over, or when the store fails', async () => {
    await warm({ load: () => Promise.withResolvers<undefined>().promise, withinMs: 20 });
    await warm({ whenFollowed: Promise.withResolvers<undefined>().promise, withinMs: 20 });
    await warm({ read: () => Promise.reject(new Error('no reply')) });
    expect(logged).toMatchObject([
      { err: { name: 'TimeoutError' }, loaded: 0 },
      { err: { name: 'TimeoutError' }, loaded: 0 },
      { err: { message: 'no reply' }, loaded: 0 },
    ]);
  });
});
