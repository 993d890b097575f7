import type { Attempt, Delivery } from '@posthorn/domain/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { messageStatus, statusBeforeAttempts, type Message } from '@posthorn/domain/message.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { attempt, deliveryStatus, describeAttempt } from './delivery.ts';
import { headerFields, idField, isoTime, timeField } from './fields.ts';
import { NOTHING_TO_SHOW, shownOf } from './shown-headers.ts';

const deliverySummary = z.object({
  id: idField('dlv'),
  webhookId: idField('wh'),
  status: deliveryStatus,
  attemptCount: z.int(),
});

/** As the creation answers it (spec, Webhook message). */
export const createdMessage = z
  .object({
    id: idField('msg'),
    delivered: z.boolean().meta({ description: 'True once every delivery is delivered' }),
    payload: z.string().meta({ description: 'The text of the payload exactly as it was sent' }),
    signature: z
      .string()
      .nullable()
      .meta({ description: 'HMAC SHA-256 of the payload, hex; of the oldest webhook' }),
    headers: headerFields,
    createdAt: timeField,
    updatedAt: timeField,
    deliveryAttempt: attempt.nullable().meta({ description: 'Of the oldest webhook' }),
    deliveries: z.array(deliverySummary).meta({ description: 'Oldest webhook first' }),
  })
  .meta({ id: 'CreatedMessage' });

const addressing = {
  appId: idField('app').nullable().meta({ description: 'Null when addressed to one webhook' }),
  eventType: z.string().nullable(),
  status: deliveryStatus,
};

export const message = z.object({ ...createdMessage.shape, ...addressing }).meta({ id: 'Message' });

/** As lists answer it: without what belongs to one webhook only. */
export const listedMessage = z
  .object({ ...createdMessage.shape, ...addressing })
  .omit({ signature: true, headers: true, deliveryAttempt: true })
  .meta({ id: 'ListedMessage' });

export type CreatedMessage = z.infer<typeof createdMessage>;

/** `data` of an accepted message: nothing has been attempted yet. */
export function describeAccepted(
  source: Message,
  webhooks: readonly FoundWebhook[],
): CreatedMessage {
  const { id, delivered, payload, createdAt, updatedAt, deliveries } = describeListed(source, []);
  const { signature, headers, deliveryAttempt } = ofOldest(source, webhooks[0] ?? null, undefined);
  return {
    id,
    delivered,
    payload,
    signature,
    headers,
    createdAt,
    updatedAt,
    deliveryAttempt,
    deliveries,
  };
}

/** The oldest webhook of a message and its delivery; undefined while that has no document. */
export interface OldestTarget {
  webhook: FoundWebhook | null;
  delivery: Delivery | undefined;
}

/** `data` of a message as it stands now; `others` are its other deliveries that have a document. */
export function describeMessage(
  source: Message,
  { webhook, delivery }: OldestTarget,
  others: readonly DeliveryOutline[],
): z.infer<typeof message> {
  const known = delivery ? [delivery, ...others] : others;
  return {
    ...describeListed(source, known),
    ...ofOldest(source, webhook, delivery?.attempts.at(-1)),
  };
}

/** What belongs to the oldest webhook only; one that does not open has no signature and headers. */
function ofOldest(
  source: Message,
  webhook: FoundWebhook | null,
  lastAttempt: Attempt | undefined,
): Pick<CreatedMessage, 'signature' | 'headers' | 'deliveryAttempt'> {
  const opened = webhook && 'problem' in webhook ? null : webhook;
  const shown = opened ? shownOf(source, opened) : NOTHING_TO_SHOW;
  const { signature, headers } = shown;
  const planned = webhook && plannedAttempt(source, webhook.id, headers);
  return {
    signature,
    headers,
    deliveryAttempt: lastAttempt ? describeAttempt(lastAttempt, shown) : planned,
  };
}

export function describeListed(
  source: Message,
  known: readonly Omit<DeliveryOutline, 'id'>[],
): z.infer<typeof listedMessage> {
  const { id, appId, eventType, payload, createdAtMs } = source;
  const byWebhook = new Map(known.map((each) => [each.webhookId, each]));
  const deliveries = source.targets.map((webhookId) => ({
    id: deliveryIdOf(id, webhookId),
    webhookId,
    status: byWebhook.get(webhookId)?.status ?? statusBeforeAttempts(source, webhookId),
    attemptCount: byWebhook.get(webhookId)?.attemptCount ?? 0,
  }));
  const status = messageStatus(deliveries.map((each) => each.status));
  const updatedAtMs = known.reduce(
    (latest, each) => Math.max(latest, each.updatedAtMs),
    createdAtMs,
  );
  return {
    id,
    appId,
    eventType,
    status,
    delivered: deliveries.length > 0 && status === 'delivered',
    payload,
    createdAt: isoTime(createdAtMs),
    updatedAt: isoTime(updatedAtMs),
    deliveries,
  };
}

/** The first attempt before it is made; its id is known because ids of attempts are derived. */
function plannedAttempt(
  source: Message,
  webhookId: string,
  headers: Header[],
): z.infer<typeof attempt> {
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
