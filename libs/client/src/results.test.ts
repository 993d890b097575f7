import { describe, expect, test } from '@jest/globals';
import { List, type Paging, type Position } from './results.ts';
import type { Answer, Envelope } from './transport.ts';

/** Returns a list of these pages, and the positions that are requested. */
function listOf(pages: Envelope[], paging: Paging = { kind: 'cursor' }) {
  const positions: Position[] = [];
  const request = (position: Position): Promise<Answer<Envelope>> => {
    positions.push(position);
    const data = pages[positions.length - 1] ?? {};
    return Promise.resolve({ data, response: new Response(), requestId: 'request-1' });
  };
  return { list: new List<number>(request, paging), positions };
}

async function itemsOf(list: AsyncIterable<number>): Promise<number[]> {
  const items: number[] = [];
  for await (const item of list) items.push(item);
  return items;
}

describe('a list', () => {
  test('requests nothing until it is used', () => {
    expect(listOf([]).positions).toEqual([]);
  });

  test('is its first page when it is awaited, requested once', async () => {
    const { list, positions } = listOf([{ data: [1, 2], nextCursor: 'b' }]);
    expect(await list).toEqual({ items: [1, 2], nextCursor: 'b' });
    const { data, requestId } = await list.withResponse();
    expect([data.items, requestId]).toEqual([[1, 2], 'request-1']);
    expect(positions).toEqual([{}]);
  });

  test('is all items in a loop, page by page, also behind an empty page', async () => {
    const { list, positions } = listOf([
      { data: [1, 2], nextCursor: 'b' },
      { data: [], nextCursor: 'c' },
      { data: [3], nextCursor: null },
    ]);
    expect(await itemsOf(list)).toEqual([1, 2, 3]);
    expect(positions).toEqual([{}, { cursor: 'b' }, { cursor: 'c' }]);
  });

  test('begins where its query says', async () => {
    const { list, positions } = listOf([{ data: [], nextCursor: null }], {
      kind: 'cursor',
      cursor: 'b',
    });
    await itemsOf(list);
    expect(positions).toEqual([{ cursor: 'b' }]);
  });

  test('requests no page that the loop does not reach', async () => {
    const { list, positions } = listOf([{ data: [1, 2], nextCursor: 'b' }]);
    for await (const item of list) if (item === 2) break;
    expect(positions).toHaveLength(1);
  });

  test.each([[['b', 'b']], [['b', 'c', 'b']]])(
    'throws when the cursors are %j',
    async (cursors) => {
      const { list, positions } = listOf(cursors.map((nextCursor) => ({ data: [1], nextCursor })));
      await expect(itemsOf(list)).rejects.toThrow('returned the cursor b twice');
      expect(positions).toHaveLength(cursors.length);
    },
  );

  test('a list with skip ends with the first page that is not full', async () => {
    const paging: Paging = { kind: 'skip', skip: 5, limit: 2 };
    const { list, positions } = listOf([{ data: [1, 2] }, { data: [3, 4] }, { data: [5] }], paging);
    expect(await itemsOf(list)).toEqual([1, 2, 3, 4, 5]);
    expect(positions).toEqual([{ skip: 5 }, { skip: 7 }, { skip: 9 }]);
  });

  test('an array of a list ends at its limit, and requests no page behind it', async () => {
    const pages = [
      { data: [1, 2], nextCursor: 'b' },
      { data: [3, 4], nextCursor: 'c' },
      { data: [5], nextCursor: null },
    ];
    const reads = [1, 2, 3, 5, 9, Infinity].map(async (limit) => {
      const { list, positions } = listOf(pages);
      return [limit, (await list.toArray({ limit })).join(''), positions.length];
    });
    expect(await Promise.all(reads)).toEqual([
      [1, '1', 1],
      [2, '12', 1],
      [3, '123', 2],
      [5, '12345', 3],
      [9, '12345', 3],
      [Infinity, '12345', 3],
    ]);
  });

  test.each([0, -1, 1.5, NaN, undefined as unknown as number])(
    'is no array with the limit %p',
    async (limit) => {
      const { list, positions } = listOf([{ data: [1], nextCursor: null }]);
      await expect(list.toArray({ limit })).rejects.toThrow(TypeError);
      expect(positions).toEqual([]);
    },
  );

  test('without pages has one', async () => {
    const { list, positions } = listOf([{ data: [1] }], { kind: 'whole' });
    expect(await itemsOf(list)).toEqual([1]);
    expect(positions).toEqual([{}]);
  });
});
