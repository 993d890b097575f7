import { expect, test } from '@jest/globals';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createBacklogTracker } from './backlog-tracker.ts';
import { putBacklog } from './put-backlog.ts';

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
