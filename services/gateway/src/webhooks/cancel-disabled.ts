import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type {
  DeliveryStore,
  SettledDelivery,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';

export interface CancelDisabledDeps {
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  logger: Logger;
}

/**
 * Deliveries to disabled webhooks are cancelled before the answer, so that lists and resends find
 * them. When this fails the dispatcher does it: their records are published like any other.
 */
export async function cancelDisabled(
  { deliveries, logger }: CancelDisabledDeps,
  message: Message,
): Promise<void> {
  const { id: messageId, disabledTargets } = message;
  if (disabledTargets.length === 0) return;
  const cancelled = disabledTargets.map((webhookId) => cancelledDelivery(message, webhookId));
  await deliveries.insertAll(cancelled).catch((error: unknown) => {
    logger.warn({ err: error, messageId }, 'cancelling is left to the dispatcher');
  });
}

function cancelledDelivery(
  { id: messageId, companyId, appId, createdAtMs }: Message,
  webhookId: string,
): SettledDelivery {
  return {
    id: deliveryIdOf(messageId, webhookId),
    messageId,
    webhookId,
    companyId,
    appId,
    createdAtMs,
    updatedAtMs: createdAtMs,
    status: 'cancelled',
    reason: 'webhook_disabled',
    attempt: null,
    nextAttemptAtMs: null,
  };
}
