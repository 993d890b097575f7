import type { Attempt, Delivery } from '@posthorn/domain/message/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { messageStatus, type Message } from '@posthorn/domain/message/message.ts';
import { statusBeforeAttempts } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import { slicesOf } from '@posthorn/platform/async/batching/slices-of.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { setImmediate as nextRound } from 'node:timers/promises';
import { z } from 'zod';
import { attemptSchema, deliveryStatusSchema, describeAttempt } from './delivery.ts';
import { headerFields, idField, isoTime, timeField } from './fields.ts';
import { UNKNOWN_HEADERS, sentHeadersOf, type SignedHeaders } from './sent-headers.ts';

const deliverySummary = z.object({
  id: idField('dlv'),
  webhookId: idField('wh'),
  status: deliveryStatusSchema,
  attemptCount: z.int(),
});

/** A message as its creation returns it (docs/contract.md C7.7). */
export const createdMessageSchema = z
  .object({
    id: idField('msg'),
    delivered: z.boolean().meta({ description: 'True once every delivery is `delivered`' }),
    payload: z
      .string()
      .meta({ description: 'Text of the payload, byte for byte as the client sent it' }),
    signature: z.string().nullable().meta({
      description:
        'Hex HMAC SHA-256 of the payload, as the oldest webhook gets it; null without a webhook',
    }),
    headers: headerFields,
    createdAt: timeField,
    updatedAt: timeField,
    deliveryAttempt: attemptSchema.nullable().meta({
      description:
        'Last attempt of the oldest webhook, or the first one before it is made; null without a webhook',
    }),
    deliveries: z
      .array(deliverySummary)
      .meta({ description: 'One for each webhook, oldest webhook first' }),
  })
  .meta({ id: 'CreatedMessage' });

/** The fields that a stored message has in addition, and those whose values differ from a created message. */
const stored = {
  payload: z.string().nullable().meta({
    description:
      'Text of the payload, byte for byte as the client sent it; null once it is erased, when its app stores payloads until they are delivered',
  }),
  appId: idField('app').nullable().meta({ description: 'Null for a message to one webhook' }),
  eventType: z.string().nullable(),
  status: deliveryStatusSchema,
};

export const messageSchema = z
  .object({ ...createdMessageSchema.shape, ...stored })
  .meta({ id: 'Message' });

/** A message as lists return it: without the fields of the oldest webhook. */
export const listedMessageSchema = z
  .object({ ...createdMessageSchema.shape, ...stored })
  .omit({ signature: true, headers: true, deliveryAttempt: true })
  .meta({ id: 'ListedMessage' });

export type CreatedMessage = z.infer<typeof createdMessageSchema>;

/** What the response to an accepted message shows of its oldest webhook. All else follows from the message. */
export type ShownWebhook = Pick<CreatedMessage, 'signature' | 'headers'>;

/** Returns what the oldest webhook of a message shows now. Takes null when the message has no target. */
export function shownOf(source: Message, oldest: FoundWebhook | null): ShownWebhook {
  const { signature, headers } = headersOf(source, oldest);
  return { signature, headers };
}

/**
 * Describes a message as it was accepted, before any attempt, over several rounds of the event loop when it has many
 * targets: the ids of 10,000 deliveries take 17 ms of CPU time.
 */
export async function describeAccepted(
  source: Message,
  { signature, headers }: ShownWebhook,
): Promise<CreatedMessage> {
  const deliveries = await plannedDeliveries(source);
  const createdAt = isoTime(source.createdAtMs);
  const [oldestId] = source.targets;
  return {
    id: source.id,
    delivered: false,
    payload: source.payload,
    signature,
    headers,
    createdAt,
    updatedAt: createdAt,
    deliveryAttempt: oldestId === undefined ? null : plannedAttempt(source, oldestId, headers),
    deliveries,
  };
}

/** To describe so many takes a millisecond. */
export const DELIVERIES_OF_A_ROUND = 500;

async function plannedDeliveries(source: Message): Promise<CreatedMessage['deliveries']> {
  const deliveries: CreatedMessage['deliveries'] = [];
  for (const targets of slicesOf(source.targets, DELIVERIES_OF_A_ROUND)) {
    if (deliveries.length > 0) await nextRound();
    for (const webhookId of targets) {
      deliveries.push({
        id: deliveryIdOf(source.id, webhookId),
        webhookId,
        status: statusBeforeAttempts(source, webhookId),
        attemptCount: 0,
      });
    }
  }
  return deliveries;
}

/** The oldest webhook of a message and its delivery. */
export interface OldestTarget {
  /** Null when it was deleted, or when the message has no target. */
  webhook: FoundWebhook | null;
  /** Undefined while no attempt is recorded. */
  delivery: Delivery | undefined;
}

/** Describes a message as it stands now, with all its deliveries in the order of its targets. */
export function describeMessage(
  source: Message,
  { webhook, delivery }: OldestTarget,
  deliveries: readonly DeliveryOutline[],
): z.infer<typeof messageSchema> {
  return {
    ...describeListed(source, deliveries),
    ...ofOldest(source, webhook, delivery?.attempts.at(-1)),
  };
}

/** The fields of the oldest webhook. One whose stored secrets cannot be decrypted has no signature and no headers. */
function ofOldest(
  source: Message,
  webhook: FoundWebhook | null,
  lastAttempt: Attempt | undefined,
): Pick<CreatedMessage, 'signature' | 'headers' | 'deliveryAttempt'> {
  const shown = headersOf(source, webhook);
  const { signature, headers } = shown;
  const planned = webhook && plannedAttempt(source, webhook.id, headers);
  return {
    signature,
    headers,
    deliveryAttempt: lastAttempt ? describeAttempt(lastAttempt, shown) : planned,
  };
}

function headersOf(source: Message, webhook: FoundWebhook | null): SignedHeaders {
  return webhook?.kind === 'opened' ? sentHeadersOf(source, webhook) : UNKNOWN_HEADERS;
}

/** Describes a message as lists show it, with all its deliveries in the order of its targets. */
export function describeListed(
  source: Message,
  all: readonly DeliveryOutline[],
): z.infer<typeof listedMessageSchema> {
  const { id, appId, eventType, payload, createdAtMs } = source;
  const deliveries = all.map((each) => ({
    id: each.id,
    webhookId: each.webhookId,
    status: each.status,
    attemptCount: each.attemptCount,
  }));
  const status = messageStatus(deliveries.map((each) => each.status));
  const updatedAtMs = all.reduce((latest, each) => Math.max(latest, each.updatedAtMs), createdAtMs);
  return {
    id,
    appId,
    eventType,
    status,
    delivered: deliveries.length > 0 && status === 'delivered',
    payload: source.isPayloadErased ? null : payload,
    createdAt: isoTime(createdAtMs),
    updatedAt: isoTime(updatedAtMs),
    deliveries,
  };
}

/** The first attempt before it is made. Its id is known already, because attempt ids are derived. */
function plannedAttempt(
  source: Message,
  webhookId: string,
  headers: Header[],
): z.infer<typeof attemptSchema> {
  const createdAt = isoTime(source.createdAtMs);
  return {
    id: attemptIdOf(deliveryIdOf(source.id, webhookId), 1),
    processed: false,
    resend: false,
    statusCode: null,
    response: null,
    headers,
    createdAt,
    updatedAt: createdAt,
  };
}
