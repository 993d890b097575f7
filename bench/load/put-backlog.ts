import { randomUUID } from 'node:crypto';
import type { Message } from '@posthorn/domain/message/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createdRecords } from '@posthorn/platform/outbox/created-records.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { BacklogTracker } from './backlog-tracker.ts';
import type { Owner } from './failed-deliveries.ts';

export interface BacklogDeps {
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'insertAll'>;
  createdTopic: string;
  tracker: BacklogTracker;
  /** Ends the load early. */
  signal: AbortSignal;
}

const PAYLOAD = JSON.stringify({ text: 'x'.repeat(200) });
/** No gateway has this name, so that the sweep does not take these messages for unpublished ones. */
const PUBLISHER = 'bench';
const RECORDS_AT_ONCE = 5_000;
const PAGES_AT_ONCE = 2;

/**
 * Stores messages to every webhook of an app and publishes a record with the payload for each webhook,
 * as a gateway does. They are stored because an attempt that waits drops its payload and loads it again.
 * Publishes at least this many records.
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
  { records, messages, createdTopic, tracker }: BacklogDeps,
  page: Message[],
): Promise<void> {
  await messages.insertAll(page);
  tracker.expect(page.map(({ id }) => id));
  await records.publish(page.flatMap((message) => createdRecords(createdTopic, message)));
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
    disabledTargets: new Set<string>(),
    idempotency: null,
    requestId: randomUUID(),
    createdAtMs,
  }));
}
