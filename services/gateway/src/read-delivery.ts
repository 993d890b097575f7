import type { Delivery } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf, isId, timePartOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages.ts';

export interface ReadDeps {
  messages: MessageStore;
  deliveries: DeliveryStore;
}

/** One delivery of the company, also before its first attempt; null when it is not there. */
export async function readDelivery(
  { messages, deliveries }: ReadDeps,
  companyId: string,
  deliveryId: string,
): Promise<Delivery | null> {
  if (!isId('dlv', deliveryId)) return null;
  const [found] = await deliveries.findMany(companyId, [deliveryId]);
  if (found) return found;
  // No document yet: a delivery's id keeps the millisecond of its message's.
  const candidates = await messages.findByIdPrefix(companyId, `msg_${timePartOf(deliveryId)}`);
  for (const message of candidates) {
    const webhookId = message.targets.find((id) => deliveryIdOf(message.id, id) === deliveryId);
    if (webhookId) return pendingDelivery(message, webhookId);
  }
  return null;
}

function pendingDelivery(message: Message, webhookId: string): Delivery {
  const { id, companyId, appId, createdAtMs } = message;
  return {
    id: deliveryIdOf(id, webhookId),
    messageId: id,
    webhookId,
    companyId,
    appId,
    status: 'pending',
    reason: null,
    attempts: [],
    nextAttemptAtMs: createdAtMs,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}
