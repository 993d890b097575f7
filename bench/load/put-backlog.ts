import { randomUUID } from 'node:crypto';
import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createdRecords } from '@posthorn/platform/outbox/created-records.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { BacklogBook } from './backlog-book.ts';
import type { Owner } from './failed-deliveries.ts';

export interface BacklogDeps {
  log: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'insertAll'>;
  createdTopic: string;
  book: BacklogBook;
  /** Ends it early. */
  signal: AbortSignal;
}

const PAYLOAD = JSON.stringify({ text: 'x'.repeat(200) });
/** No gateway has this name, so nobody takes these messages for unpublished ones. */
const PUBLISHER = 'bench';
const RECORDS_AT_ONCE = 5_000;
const PAGES_AT_ONCE = 2;

/**
 * As a gateway leaves them: messages to every webhook of an app, stored, and a record for each
 * webhook with the payload in it. Stored too, because an attempt that waits drops its payload and
 * loads it again. Puts at least so many records.
 */
export async function putBacklog(deps: BacklogDeps, owner: Owner, records: number): Promise<void> {
  const pageSize = Math.max(1, Math.floor(RECORDS_AT_ONCE / owner.webhookIds.length));
  let rest = Math.ceil(records / owner.webhookIds.length);
  const worker = async (): Promise<void> => {
    while (rest > 0 && !deps.signal.aborted) {
      const size = Math.min(pageSize, rest);
      rest -= size;
      await putPage(deps, newMessages(owner, size));
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, worker));
}

async function putPage(
  { log, messages, createdTopic, book }: BacklogDeps,
  page: Message[],
): Promise<void> {
  await messages.insertAll(page);
  book.expect(page.map(({ id }) => id));
  await log.publish(page.flatMap((message) => createdRecords(createdTopic, message)));
}

function newMessages({ companyId, appId, webhookIds }: Owner, count: number): Message[] {
  const createdAtMs = Date.now();
  return Array.from({ length: count }, () => ({
    id: systemIds('msg'),
    companyId,
    appId,
    payload: PAYLOAD,
    targets: [...webhookIds],
    publisherId: PUBLISHER,
    eventType: null,
    disabledTargets: [],
    idempotency: null,
    requestId: randomUUID(),
    createdAtMs,
  }));
}
