import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { notFound } from '../http/api-error.ts';
import { outlineBefore, withDeliveries } from './deliveries-of-messages.ts';
import type { TakeTurn } from '../http/turns/turns.ts';
import type { OldestTarget } from '../http/responses/message.ts';

export interface ReadMessageDeps extends ReadMessageStores {
  takeTurn: TakeTurn;
}

export interface ReadMessageStores {
  messages: Pick<MessageQueries, 'findOne'>;
  deliveries: Pick<DeliveryQueries, 'findMany' | 'outlinesOf'>;
  webhooks: Pick<WebhookStore, 'findTarget'>;
}

export interface ReadMessage {
  message: Message;
  oldest: OldestTarget;
  /** All of them, in the order of its targets. */
  deliveries: DeliveryOutline[];
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
  if (oldestId === undefined) return { message, oldest: NO_TARGET, deliveries: [] };
  const [[delivery], [others], webhook] = await Promise.all([
    deps.deliveries.findMany(companyId, [deliveryIdOf(messageId, oldestId)]),
    withDeliveries(deps, companyId, [{ ...message, targets: otherIds }]),
    deps.webhooks.findTarget(companyId, oldestId),
  ]);
  const first = delivery ?? outlineBefore(message, oldestId);
  const deliveries = [first, ...(others?.deliveries ?? [])];
  return { message, oldest: { webhook, delivery }, deliveries };
}

/** Throws ApiError 404 for an unknown message. */
export async function requireMessage(
  { messages }: Pick<ReadMessageStores, 'messages'>,
  companyId: string,
  messageId: string,
): Promise<Message> {
  const found = await messages.findOne(companyId, messageId);
  if (!found) throw notFound('message');
  return found;
}
