import { expect, test } from '@jest/globals';
import { createBacklogBook, MAX_BACKLOG_ENDPOINTS } from './backlog-book.ts';

test('a record is missing until it has arrived at its endpoint', () => {
  const book = createBacklogBook(2);
  book.expect(['msg_1', 'msg_2']);
  expect(book.missing()).toBe(4);
  book.note('msg_1', 0);
  book.note('msg_2', 1);
  expect(book.missing()).toBe(2);
  expect(book.expected()).toBe(4);
});

test('what arrives again is a duplicate, and what nobody expects is none', () => {
  const book = createBacklogBook(MAX_BACKLOG_ENDPOINTS);
  book.expect(['msg_1']);
  const last = MAX_BACKLOG_ENDPOINTS - 1;
  for (const id of ['msg_1', 'msg_1', 'msg_other']) book.note(id, last);
  expect(book.duplicates()).toBe(1);
  expect(book.missing()).toBe(last);
});

test('more endpoints than bits are refused', () => {
  expect(() => createBacklogBook(MAX_BACKLOG_ENDPOINTS + 1)).toThrow('at most 32');
});
