import { expect, test } from '@jest/globals';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createBacklogBook } from './backlog-book.ts';
import { putBacklog } from './put-backlog.ts';

const OWNER = { companyId: 'comp_1', appId: 'app_1', webhookIds: ['wh_a', 'wh_b', 'wh_c'] };

async function put(records: number) {
  const published: OutgoingRecord[] = [];
  const stored: string[] = [];
  const book = createBacklogBook(OWNER.webhookIds.length);
  const log = {
    publish: (page: readonly OutgoingRecord[]) => Promise.resolve(void published.push(...page)),
  };
  const messages = {
    insertAll: (page: readonly { id: string }[]) => {
      stored.push(...page.map(({ id }) => id));
      return Promise.resolve(page.map(() => 'stored' as const));
    },
  };
  const { signal } = new AbortController();
  await putBacklog({ log, messages, createdTopic: 'created', book, signal }, OWNER, records);
  return { published, stored, book };
}

test('a backlog has at least the wanted records, one for each webhook of a message', async () => {
  const { published, stored, book } = await put(10);
  expect(stored).toHaveLength(4);
  expect(published).toHaveLength(12);
  expect(book.missing()).toBe(12);
  expect(new Set(published.map(({ key }) => key))).toEqual(new Set(OWNER.webhookIds));
});

test('its records are such as the dispatcher reads, with the payload in them', async () => {
  const { published, stored } = await put(3);
  const [due] = published.map(({ value }) => decodeMessageCreated(value));
  expect(due).toMatchObject({ messageId: stored[0], webhookId: 'wh_a', attemptNumber: 1 });
  expect(due?.payload?.length).toBeGreaterThan(200);
});
