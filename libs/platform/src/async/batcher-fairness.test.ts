import { describe, expect, test } from '@jest/globals';
import { type Batcher, createBatcher } from './batcher.ts';

describe('a batcher whose items belong to keys', () => {
  interface Item {
    key: string;
    cost: number;
  }
  let taken: string[][] = [];

  function fairBatcher(maxItems: number): Batcher<Item, undefined> {
    taken = [];
    return createBatcher<Item, undefined>({
      maxItems,
      lingerMs: 5,
      maxInFlight: 1,
      keyOf: ({ key }) => key,
      costOf: ({ cost }) => cost,
      run: (items) => {
        taken.push(items.map(({ key }) => key));
        return Promise.resolve(items.map(() => undefined));
      },
    });
  }

  const addKeys = (batcher: Batcher<Item, undefined>, keys: string, cost = 1) =>
    Promise.all(Array.from(keys, (key) => batcher.add({ key, cost })));

  test('gives each key an item of the next batch, whichever came first', async () => {
    const batcher = fairBatcher(4);
    void addKeys(batcher, 'aaaaaaaaaa');
    void addKeys(batcher, 'b');
    await batcher.idle();
    expect(taken.map((batch) => batch.join(''))).toEqual(['aaaa', 'abaa', 'aaa']);
  });

  test('lets a single key fill the batch', async () => {
    const batcher = fairBatcher(4);
    await addKeys(batcher, 'aaaaaaaa');
    expect(taken.map((batch) => batch.length)).toEqual([4, 4]);
  });

  test('counts items by their cost, and takes one that costs more than a whole batch', async () => {
    const batcher = fairBatcher(4);
    void addKeys(batcher, 'aaa', 9);
    void addKeys(batcher, 'bbbbb', 1);
    await batcher.idle();
    expect(taken.map((batch) => batch.join(''))).toEqual(['a', 'a', 'bbbb', 'ba']);
  });
});
