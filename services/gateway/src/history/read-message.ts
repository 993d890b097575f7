import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { notFound } from '../http/api-error.ts';
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
  const [[delivery], others, webhook] = await Promise.all([
    deps.deliveries.findMany(companyId, [deliveryIdOf(messageId, oldestId)]),
    deliveriesTo(deps, message, otherIds),
    deps.webhooks.findTarget(companyId, oldestId),
  ]);
  return { message, oldest: { webhook, delivery }, others };
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

/** To read so many takes 3 ms of CPU time. */
const PER_TURN = 1_000;

/** Returns those of the deliveries to these webhooks that are recorded. */
async function deliveriesTo(
  { deliveries, takeTurn }: ReadMessageDeps,
  { id, companyId }: Message,
  webhookIds: readonly string[],
): Promise<DeliveryOutline[]> {
  const found: DeliveryOutline[] = [];
  for (let from = 0; from < webhookIds.length; from += PER_TURN) {
    await takeTurn();
    const ids = webhookIds.slice(from, from + PER_TURN).map((to) => deliveryIdOf(id, to));
    found.push(...(await deliveries.outlinesOf(companyId, ids)));
  }
  return found;
}
