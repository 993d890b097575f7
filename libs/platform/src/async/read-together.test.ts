import { describe, expect, test } from '@jest/globals';
import { createReadTogether } from './read-together.ts';

describe('look-ups that are read together', () => {
  test('are one read of each key, and get what it found', async () => {
    const reads: string[][] = [];
    const read = createReadTogether((keys) => {
      reads.push([...keys]);
      return Promise.resolve(new Map(Object.entries({ a: 1, b: 2 })));
    });
    expect(await Promise.all(['a', 'b', 'a', 'c'].map(read))).toEqual([1, 2, 1, undefined]);
    expect(reads).toEqual([['a', 'b', 'c']]);
  });

  test('are several reads beyond the bound, and those of a read that fails reject', async () => {
    const read = createReadTogether<number>(
      (keys) =>
        keys.has('c')
          ? Promise.reject(new Error('no reply'))
          : Promise.resolve(new Map([['a', 1]])),
      { maxItems: 2 },
    );
    const results = await Promise.allSettled(['a', 'b', 'c'].map(read));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  });
});
