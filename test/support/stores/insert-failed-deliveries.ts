import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { insertIn } from './stored-documents.ts';

/**
 * Inserts messages with one exhausted delivery each, as seven failed attempts leave them; returns the
 * ids of the messages. Not through the API, where thousands would take minutes.
 */
export async function insertFailedDeliveries(
  db: Database,
  { companyId, webhookId }: { companyId: string; webhookId: string },
  count: number,
): Promise<string[]> {
  const createdAt = new Date();
  const messages = Array.from({ length: count }, (_, n) => ({
    _id: systemIds('msg'),
    companyId,
    appId: null,
    payload: JSON.stringify({ n }),
    targets: [webhookId],
    publisherId: 'gw_0',
    requestId: 'request-1',
    createdAt,
  }));
  await insertIn(db.days.messages, messages);
  const deliveries = messages.map(({ _id: messageId }) => ({
    _id: deliveryIdOf(messageId, webhookId),
    messageId,
    webhookId,
    companyId,
    appId: null,
    status: 'exhausted' as const,
    reason: null,
    attemptCount: 7,
    attempts: [],
    nextAttemptAt: null,
    createdAt,
    updatedAt: createdAt,
  }));
  await insertIn(db.days.deliveries, deliveries);
  return messages.map(({ _id }) => _id);
}
