import { expect, test } from '@jest/globals';
import { createBacklogTracker, MAX_BACKLOG_ENDPOINTS } from './backlog-tracker.ts';

test('a record is missing until it has arrived at its endpoint', () => {
  const tracker = createBacklogTracker(2);
  tracker.expect(['msg_1', 'msg_2']);
  expect(tracker.missing()).toBe(4);
  tracker.note('msg_1', 0);
  tracker.note('msg_2', 1);
  expect(tracker.missing()).toBe(2);
  expect(tracker.expected()).toBe(4);
});

test('counts repeated arrivals as duplicates, and ignores unexpected ones', () => {
  const tracker = createBacklogTracker(MAX_BACKLOG_ENDPOINTS);
  tracker.expect(['msg_1']);
  const last = MAX_BACKLOG_ENDPOINTS - 1;
  for (const id of ['msg_1', 'msg_1', 'msg_other']) tracker.note(id, last);
  expect(tracker.duplicates()).toBe(1);
  expect(tracker.missing()).toBe(last);
});

test('rejects more endpoints than it has bits', () => {
  expect(() => createBacklogTracker(MAX_BACKLOG_ENDPOINTS + 1)).toThrow('at most 32');
});
