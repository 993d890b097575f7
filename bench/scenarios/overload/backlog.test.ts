import { expect, test } from '@jest/globals';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createBacklogTracker, putBacklog, MAX_BACKLOG_ENDPOINTS } from './backlog.ts';

const OWNER = { companyId: 'comp_1', appId: 'app_1', webhookIds: ['wh_a', 'wh_b', 'wh_c'] };

async function put(count: number) {
  const published: OutgoingRecord[] = [];
  const stored: string[] = [];
  const tracker = createBacklogTracker(OWNER.webhookIds.length);
  const records = {
    publish: (page: readonly OutgoingRecord[]) => Promise.resolve(void published.push(...page)),
  };
  const messages = {
    insertAll: (page: readonly { id: string }[]) => {
      stored.push(...page.map(({ id }) => id));
      return Promise.resolve(page.map(() => 'stored' as const));
    },
  };
  const { signal } = new AbortController();
  await putBacklog({ records, messages, createdTopic: 'created', tracker, signal }, OWNER, count);
  return { published, stored, tracker };
}

test('publishes at least the wanted records, one for each webhook of a message', async () => {
  const { published, stored, tracker } = await put(10);
  expect(stored).toHaveLength(4);
  expect(published).toHaveLength(12);
  expect(tracker.missing()).toBe(12);
  expect(new Set(published.map(({ key }) => key))).toEqual(new Set(OWNER.webhookIds));
});

test('publishes records that the dispatcher can read, with the payload in them', async () => {
  const { published, stored } = await put(3);
  const [due] = published.map(({ value }) => decodeMessageCreated(value));
  expect(due).toMatchObject({ messageId: stored[0], webhookId: 'wh_a', attemptNumber: 1 });
  expect(due?.payload?.length).toBeGreaterThan(200);
});

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
