import type { Delivery } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf, isId, timePartOf } from '@posthorn/domain/ids.ts';
import { statusBeforeAttempts, type Message } from '@posthorn/domain/message.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/vault/vault.ts';
import type { Sendable } from '../http/answers/delivery.ts';
import { NOTHING_TO_SHOW, shownOf } from '../http/answers/shown-headers.ts';

export interface ReadDeps {
  messages: Pick<MessageQueries, 'findOne' | 'findByIdPrefix'>;
  deliveries: Pick<DeliveryQueries, 'findMany'>;
  webhooks: Pick<WebhookStore, 'findOne'>;
}

export interface ReadDelivery {
  source: Delivery;
  sendable: Sendable;
}

/** One delivery of the company, also before its first attempt; null when it is not there. */
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
  // No document yet: a delivery's id keeps the millisecond of its message's.
  const candidates = await deps.messages.findByIdPrefix(companyId, `msg_${timePartOf(deliveryId)}`);
  for (const message of candidates) {
    const webhookId = message.targets.find((id) => deliveryIdOf(message.id, id) === deliveryId);
    if (webhookId) return withHeaders(deps, message, deliveryBefore(message, webhookId));
  }
  return null;
}

/** Those of a message's deliveries that go to these webhooks, in their order. */
export async function deliveriesOf(
  deps: ReadDeps,
  message: Message,
  webhookIds: readonly string[],
): Promise<ReadDelivery[]> {
  const ids = webhookIds.map((webhookId) => deliveryIdOf(message.id, webhookId));
  const known = await deps.deliveries.findMany(message.companyId, ids);
  const byId = new Map(known.map((each) => [each.id, each]));
  return Promise.all(
    webhookIds.map((webhookId, index) =>
      withHeaders(deps, message, byId.get(ids[index] ?? '') ?? deliveryBefore(message, webhookId)),
    ),
  );
}

async function withHeaders(
  { webhooks }: ReadDeps,
  message: Message | null,
  source: Delivery,
): Promise<ReadDelivery> {
  // What happened stays readable, also when the webhook's stored secrets do not open.
  const webhook = await webhooks.findOne(source.companyId, source.webhookId).catch(nullIfSealed);
  return { source, sendable: message && webhook ? shownOf(message, webhook) : NOTHING_TO_SHOW };
}

/** Passes on every error but the one of a stored secret that does not open. */
function nullIfSealed(error: unknown): null {
  if (error instanceof SealedValueError) return null;
  throw error;
}

/** A delivery without a document: nothing has been attempted. */
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
    reason: status === 'cancelled' ? 'webhook_disabled' : null,
    attemptCount: 0,
    attempts: [],
    nextAttemptAtMs: status === 'pending' ? createdAtMs : null,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}
