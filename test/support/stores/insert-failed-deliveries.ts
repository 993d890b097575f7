import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { collection } from '@posthorn/platform/mongo/documents/collections.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';

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
  await collection(db, 'messages').insertMany(messages, { ordered: false });
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
  await collection(db, 'deliveries').insertMany(deliveries, { ordered: false });
  return messages.map(({ _id }) => _id);
}
