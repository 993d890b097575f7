import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type DeliveryPage, mergePages, type PageOrder, pageOfRead } from './delivery-pages.ts';

interface Listed {
  id: string;
  messageId: string;
}

const listed = (n: number): Listed => ({ id: `dlv_${(n * 7) % 10}`, messageId: `msg_${n % 3}` });

function inOrder(all: readonly Listed[], order: PageOrder): Listed[] {
  const keyOf = ({ id, messageId }: Listed): string =>
    order === 'newest_messages' ? messageId + id : id;
  const oldestFirst = all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return order === 'oldest' ? oldestFirst : oldestFirst.reverse();
}

const orders = fc.constantFrom<PageOrder>('newest_messages', 'newest', 'oldest');

test('a merged page is the beginning of the list of all, however long the pages are', () => {
  const numbers = fc.uniqueArray(fc.nat(9));
  const limits = fc.integer({ min: 1, max: 5 });
  fc.assert(
    fc.property(numbers, numbers, limits, orders, (first, second, limit, order) => {
      const lists = [first, second].map((list) => inOrder(list.map(listed), order));
      const pages = lists.map((list) => pageOfRead(list.slice(0, limit), limit));
      const all = inOrder([...new Set([...first, ...second])].map(listed), order);
      const { found, readTo } = mergePages(pages, order, limit);
      expect(found).toEqual(all.slice(0, limit));
      const hasMore = readTo !== null;
      expect(hasMore || found.length === all.length).toBe(true);
    }),
  );
});

test('a merged page ends where one of its pages has stopped, which may be before its first delivery', () => {
  const recorded = pageOfRead([listed(1), listed(2)], 5);
  const stopped: DeliveryPage<Listed> = {
    found: [],
    examined: 9,
    readTo: { messageId: 'msg_9', deliveryId: 'dlv_9' },
  };
  expect(mergePages([stopped, recorded], 'newest', 5)).toEqual({
    found: [],
    examined: 11,
    readTo: stopped.readTo,
  });
});
