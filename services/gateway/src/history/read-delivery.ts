import type { Delivery } from '@posthorn/domain/message/delivery.ts';
import { deliveryIdOf, isId, timePartOf } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import { statusBeforeAttempts } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import { cancelReasonAtAcceptance } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/vault/vault.ts';
import type { SentHeaders } from '../http/responses/delivery.ts';
import { UNKNOWN_HEADERS, sentHeadersOf } from '../http/responses/sent-headers.ts';

export interface ReadDeps {
  messages: Pick<MessageQueries, 'findOne' | 'findByIdPrefix'>;
  deliveries: Pick<DeliveryQueries, 'findMany'>;
  webhooks: Pick<WebhookStore, 'findOne'>;
}

export interface ReadDelivery {
  source: Delivery;
  sentHeaders: SentHeaders;
  /** The payload of its message was erased, so that nothing can be sent again. */
  isPayloadErased: boolean;
}

/** Returns a delivery of the company, even before its first attempt; null when there is none with this id. */
export async function readDelivery(
  deps: ReadDeps,
  companyId: string,
  deliveryId: string,
): Promise<ReadDelivery | null> {
  if (!isId('dlv', deliveryId)) return null;
  const [known] = await deps.deliveries.findMany(companyId, [deliveryId]);
  if (known) {
    const message = await deps.messages.findOne(companyId, known.messageId);
    return withHeaders(deps, message, known);
  }
  // It may have no document yet. The id of a delivery contains the millisecond of its message's id.
  const candidates = await deps.messages.findByIdPrefix(companyId, `msg_${timePartOf(deliveryId)}`);
  for (const message of candidates) {
    const webhookId = message.targets.find((id) => deliveryIdOf(message.id, id) === deliveryId);
    if (webhookId) return withHeaders(deps, message, deliveryBefore(message, webhookId));
  }
  return null;
}

/** Returns the deliveries of a message to these webhooks, in their order. */
export async function deliveriesOf(
  deps: ReadDeps,
  message: Message,
  webhookIds: readonly string[],
): Promise<ReadDelivery[]> {
  const ids = webhookIds.map((webhookId) => deliveryIdOf(message.id, webhookId));
  const known = await deps.deliveries.findMany(message.companyId, ids);
  const byWebhook = new Map(known.map((each) => [each.webhookId, each]));
  return Promise.all(
    webhookIds.map((webhookId) => {
      const delivery = byWebhook.get(webhookId) ?? deliveryBefore(message, webhookId);
      return withHeaders(deps, message, delivery);
    }),
  );
}

async function withHeaders(
  { webhooks }: ReadDeps,
  message: Message | null,
  source: Delivery,
): Promise<ReadDelivery> {
  // The delivery stays readable when the secrets of its webhook cannot be decrypted.
  const webhook = await webhooks.findOne(source.companyId, source.webhookId).catch(nullIfSealed);
  return {
    source,
    sentHeaders: message && webhook ? sentHeadersOf(message, webhook) : UNKNOWN_HEADERS,
    isPayloadErased: message?.isPayloadErased ?? false,
  };
}

/** Returns null for a secret that cannot be decrypted, and throws every other error. */
function nullIfSealed(error: unknown): null {
  if (error instanceof SealedValueError) return null;
  throw error;
}

/** Returns a delivery as it is before its first attempt, while it has no document. */
function deliveryBefore(message: Message, webhookId: string): Delivery {
  const { id, companyId, appId, createdAtMs } = message;
  const status = statusBeforeAttempts(message, webhookId);
  return {
    id: deliveryIdOf(id, webhookId),
    messageId: id,
    webhookId,
    companyId,
    appId,
    status,
    reason: cancelReasonAtAcceptance(message, webhookId),
    attemptCount: 0,
    attempts: [],
    nextAttemptAtMs: status === 'pending' ? createdAtMs : null,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}
