import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { notFound } from '../http/api-error.ts';
import type { OldestTarget } from '../http/responses/message.ts';

export interface ReadMessageDeps {
  messages: Pick<MessageQueries, 'findOne'>;
  deliveries: Pick<DeliveryQueries, 'findMany' | 'outlinesOf'>;
  webhooks: Pick<WebhookStore, 'findTarget'>;
}

export interface ReadMessage {
  message: Message;
  oldest: OldestTarget;
  /** The deliveries to its other webhooks, without those that have no recorded attempt. */
  others: DeliveryOutline[];
}

const NO_TARGET: OldestTarget = { webhook: null, delivery: undefined };

/** Throws ApiError 404 for an unknown message. */
export async function readMessage(
  deps: ReadMessageDeps,
  companyId: string,
  messageId: string,
): Promise<ReadMessage> {
  const message = await requireMessage(deps, companyId, messageId);
  const [oldestId, ...otherIds] = message.targets;
  if (oldestId === undefined) return { message, oldest: NO_TARGET, others: [] };
  const deliveryIds = otherIds.map((webhookId) => deliveryIdOf(messageId, webhookId));
  const [[delivery], others, webhook] = await Promise.all([
    deps.deliveries.findMany(companyId, [deliveryIdOf(messageId, oldestId)]),
    deps.deliveries.outlinesOf(companyId, deliveryIds),
    deps.webhooks.findTarget(companyId, oldestId),
  ]);
  return { message, oldest: { webhook, delivery }, others };
}

/** Throws ApiError 404 for an unknown message. */
export async function requireMessage(
  { messages }: Pick<ReadMessageDeps, 'messages'>,
  companyId: string,
  messageId: string,
): Promise<Message> {
  const found = await messages.findOne(companyId, messageId);
  if (!found) throw notFound('message');
  return found;
}
