import { statusBeforeAttempts } from '@posthorn/domain/delivery/when-cancelled.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  type Attempt,
  CANCEL_REASONS,
  type Delivery,
  endedAtMs,
  EXHAUST_REASONS,
  MESSAGE_STATUSES,
  messageStatus,
  OUTCOMES,
  STATUSES,
} from '@posthorn/domain/delivery/delivery.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import { type Message, NO_TARGET_REASONS } from '@posthorn/domain/message.ts';
import {
  messageResponseShape,
  shownFields,
  type ShownMessageFields,
} from '@posthorn/domain/message-fields.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { setImmediate as nextRound } from 'node:timers/promises';
import { z } from 'zod';
import type { AcceptOutcome } from '../accept/idempotency.ts';
import { toApiError } from '../api-error.ts';
import type { ShownDelivery } from '../history/list-deliveries.ts';
import type { OldestTarget } from '../history/messages.ts';
import { headersOf, type SentHeaders, type ShownHeaders } from '../history/sent-headers.ts';
import { headerFields, idField, isoTime, timeField } from './fields.ts';

export const deliveryStatusSchema = z.enum(STATUSES).meta({ id: 'DeliveryStatus' });

export const messageStatusSchema = z.enum(MESSAGE_STATUSES).meta({
  id: 'MessageStatus',
  description: 'That of its least finished delivery; `no_target` when it went to no webhook',
});

/** The fields of an attempt in docs/contract.md C7.8. */
const attemptSchema = z
  .object({
    id: idField('att'),
    processed: z.boolean().meta({ description: 'False until the attempt is made' }),
    resend: z.boolean(),
    statusCode: z
      .int()
      .nullable()
      .meta({ description: 'Status of the endpoint; null when none arrived in time' }),
    response: z.string().nullable().meta({ description: 'The first 4 KiB of the response body' }),
    headers: headerFields.meta({
      description:
        'Headers that are sent, with credentials masked. Empty when the webhook was changed or deleted since',
    }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Attempt' });

/** An attempt that was made, as its delivery shows it. */
const madeAttemptSchema = z
  .object({
    ...attemptSchema.shape,
    number: z.int().min(1),
    outcome: z.enum(OUTCOMES),
    failureReason: z
      .string()
      .nullable()
      .meta({ description: 'Why there was no access token, with `token_failed`; else null' }),
    durationMs: z.int(),
    responseHeaders: headerFields,
  })
  .meta({ id: 'MadeAttempt' });

export const deliverySchema = z
  .object({
    id: idField('dlv'),
    messageId: idField('msg'),
    webhookId: idField('wh'),
    status: deliveryStatusSchema,
    reason: z
      .enum([...CANCEL_REASONS, ...EXHAUST_REASONS])
      .nullable()
      .meta({
        description:
          'Why the delivery was cancelled, or exhausted before all attempts were made; null otherwise',
      }),
    attemptCount: z.int(),
    nextAttemptAt: timeField.nullable(),
    waiting: z.enum(WAITING).nullable().meta({
      description:
        'Why it waits without a planned attempt. `hold`: its webhook or app is on hold, or was and it is to be released; null while it does not wait',
    }),
    waitingSince: timeField.nullable(),
    attempts: z.array(madeAttemptSchema),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Delivery' });

/** Shows no headers for an attempt that is older than the last change of the webhook: they may have been others. */
function describeAttempt(source: Attempt, sentHeaders: SentHeaders): z.infer<typeof attemptSchema> {
  const { id, trigger, statusCode, response } = source;
  const headers = source.startedAtMs >= sentHeaders.sinceMs ? sentHeaders.headers : [];
  return {
    id,
    processed: true,
    resend: trigger === 'resend',
    statusCode,
    response,
    headers,
    createdAt: isoTime(source.startedAtMs),
    updatedAt: isoTime(endedAtMs(source)),
  };
}

export function describeDelivery(
  source: Delivery,
  sentHeaders: SentHeaders,
): z.infer<typeof deliverySchema> {
  return {
    ...describeState(source),
    attempts: source.attempts.map((each) => {
      const { number, outcome, failureReason = null, durationMs, responseHeaders } = each;
      return {
        ...describeAttempt(each, sentHeaders),
        number,
        outcome,
        failureReason,
        durationMs,
        responseHeaders,
      };
    }),
  };
}

/** A delivery in the list of deliveries (docs/contract.md C12.8). */
export const listedDeliverySchema = deliverySchema
  .omit({ attempts: true })
  .extend({
    appId: idField('app').nullable().meta({ description: 'Null for a message to one webhook' }),
    eventType: z.string().nullable(),
    lastOutcome: z
      .enum(OUTCOMES)
      .nullable()
      .meta({ description: 'How the last attempt ended; null before the first one' }),
  })
  .meta({ id: 'ListedDelivery' });

export function describeListedDelivery(
  source: ShownDelivery,
): z.infer<typeof listedDeliverySchema> {
  const { appId, eventType, lastOutcome } = source;
  return { ...describeState(source), appId, eventType, lastOutcome };
}

type StateField = Exclude<keyof ShownDelivery, 'appId' | 'eventType' | 'lastOutcome'>;

/** Describes a delivery without its attempts. */
function describeState(
  source: Pick<Delivery, StateField>,
): Omit<z.infer<typeof deliverySchema>, 'attempts'> {
  const { id, messageId, webhookId, status, reason, attemptCount, nextAttemptAtMs } = source;
  return {
    id,
    messageId,
    webhookId,
    status,
    reason,
    attemptCount,
    nextAttemptAt: nextAttemptAtMs === null ? null : isoTime(nextAttemptAtMs),
    waiting: source.waiting,
    waitingSince: source.waitingSinceMs === null ? null : isoTime(source.waitingSinceMs),
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}

const deliverySummary = z
  .object({
    id: idField('dlv'),
    webhookId: idField('wh'),
    status: deliveryStatusSchema,
    attemptCount: z.int(),
  })
  .meta({ id: 'DeliverySummary' });

/** A message in the response to its creation (docs/contract.md C7.7). */
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
    ...messageResponseShape,
    noTargetReason: z.enum(NO_TARGET_REASONS).nullable().meta({
      description:
        'Why the message goes to no webhook: its app has none, none that selects its event type, or none whose filter it passes. Null when it goes to some',
    }),
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

/** The result of each message of a batch (docs/contract.md C22). */
export const createdMessagesSchema = z
  .object({
    accepted: z.int().meta({ description: 'Messages that are stored durably now' }),
    replayed: z.int().meta({ description: 'Repeats, for which nothing was stored' }),
    failed: z.int(),
    results: z
      .array(
        z
          .object({
            index: z.int().meta({ description: 'Place in `messages`, from 0' }),
            status: z.enum(['accepted', 'replayed', 'failed']),
            messageId: idField('msg').optional().meta({ description: 'Absent with `failed`' }),
            deliveries: z
              .int()
              .optional()
              .meta({ description: 'How many webhooks the message goes to. Absent with `failed`' }),
            code: z
              .string()
              .optional()
              .meta({ description: 'Why it failed. Each cause has one fixed code' }),
            message: z.string().optional().meta({ description: 'For people. The text may change' }),
          })
          .meta({ id: 'MessageResult' }),
      )
      .meta({ description: 'One for each message, in the order of the request' }),
  })
  .meta({ id: 'CreatedMessages' });

/** The fields of a stored message that a created message does not have, or has with other values. */
const stored = {
  payload: z.string().nullable().meta({
    description:
      'Text of the payload, byte for byte as the client sent it; null once it is erased, for a client or because its app stores payloads until they are delivered',
  }),
  appId: idField('app').nullable().meta({ description: 'Null for a message to one webhook' }),
  eventType: z.string().nullable(),
  status: messageStatusSchema,
};

export const messageSchema = z
  .object({ ...createdMessageSchema.shape, ...stored })
  .meta({ id: 'Message' });

/** A message in a list: without the fields of the oldest webhook. */
export const listedMessageSchema = z
  .object({ ...createdMessageSchema.shape, ...stored })
  .omit({ signature: true, headers: true, deliveryAttempt: true })
  .meta({ id: 'ListedMessage' });

type CreatedMessage = z.infer<typeof createdMessageSchema>;
type CreatedMessages = z.infer<typeof createdMessagesSchema>;
type MessageResult = CreatedMessages['results'][number];

/** Describes what became of the messages of a batch. */
export function describeOutcomes(outcomes: readonly AcceptOutcome[]): CreatedMessages {
  const counts = { accepted: 0, replayed: 0, failed: 0 };
  const results = outcomes.map((outcome, index) => {
    counts[outcome.kind] += 1;
    return describeOutcome(outcome, index);
  });
  return { ...counts, results };
}

function describeOutcome(outcome: AcceptOutcome, index: number): MessageResult {
  const { kind: status } = outcome;
  switch (outcome.kind) {
    case 'accepted': {
      const { id: messageId, targets } = outcome.message;
      return { index, status, messageId, deliveries: targets.length };
    }
    case 'replayed': {
      const { id: messageId, targetCount } = outcome.holder;
      return { index, status, messageId, deliveries: targetCount };
    }
    case 'failed': {
      const { code, message } = toApiError(outcome.error);
      return { index, status, code, message };
    }
  }
}

/**
 * Describes an accepted message before any attempt, in several iterations of the event loop when it has many targets:
 * the ids of 10,000 deliveries take 17 ms of CPU time.
 */
export async function describeAccepted(
  source: Message,
  { signature, headers }: ShownHeaders,
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
    ...givenWith(source),
    createdAt,
    updatedAt: createdAt,
    deliveryAttempt: oldestId === undefined ? null : plannedAttempt(source, oldestId, headers),
    deliveries,
  };
}

/** The fields that the client gave with the message, and why it goes nowhere. */
function givenWith(message: Message): ShownMessageFields & Pick<CreatedMessage, 'noTargetReason'> {
  return {
    ...shownFields(message),
    // A replay may have added a target.
    noTargetReason: message.targets.length === 0 ? (message.noTargetReason ?? null) : null,
  };
}

/** Describing this many deliveries takes a millisecond. */
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

/** The fields of the oldest webhook. Without decrypted secrets there are no signature and no headers. */
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
    delivered: status === 'delivered',
    payload: source.isPayloadErased ? null : payload,
    ...givenWith(source),
    createdAt: isoTime(createdAtMs),
    updatedAt: isoTime(updatedAtMs),
    deliveries,
  };
}

/** The first attempt before it is made. Its id is derived, so it is known already. */
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
