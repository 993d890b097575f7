import type { Message } from '@posthorn/domain/message/message.ts';
import { unattemptedDelivery } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';

export interface CancelDisabledDeps {
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  logger: Logger;
}

const MAX_LOGGED = 5;

/**
 * Records the deliveries to disabled webhooks as cancelled. This runs before the response, so that
 * lists and resends find them. When it fails, the dispatcher cancels them: their records are
 * published like all others.
 */
export async function cancelDisabledDeliveries(
  { deliveries, logger }: CancelDisabledDeps,
  message: Message,
): Promise<void> {
  const { id: messageId, companyId, disabledTargets, createdAtMs } = message;
  if (disabledTargets.length === 0) return;
  const cancelled = disabledTargets.map((webhookId) =>
    unattemptedDelivery(message, webhookId, createdAtMs),
  );
  await deliveries.insertAll(cancelled).catch((error: unknown) => {
    logger.warn(
      { err: error, messageId, companyId, webhookIds: disabledTargets.slice(0, MAX_LOGGED) },
      'cannot cancel deliveries to disabled webhooks, the dispatcher will',
    );
  });
}
