import { statusBeforeAttempts } from '@posthorn/domain/delivery/when-cancelled.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  type Attempt,
  CANCEL_REASONS,
  type Delivery,
  endedAtMs,
  OUTCOMES,
} from '@posthorn/domain/delivery/delivery.ts';
import { type Message, messageStatus } from '@posthorn/domain/message.ts';
import { acceptHeaders, DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import { hmacSignature } from '@posthorn/domain/request/signature.ts';
import { type Header, isSignedByCompany, type Webhook } from '@posthorn/domain/webhook.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { setImmediate as nextRound } from 'node:timers/promises';
import { z } from 'zod';
import { headerFields, idField, isoTime, timeField } from './fields.ts';

export const deliveryStatusSchema = z
  .enum(['pending', 'delivered', 'exhausted', 'cancelled'])
  .meta({ id: 'DeliveryStatus' });

/** The fields of an attempt that the contract names (docs/contract.md C7.8). */
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

export const deliverySchema = z
  .object({
    id: idField('dlv'),
    messageId: idField('msg'),
    webhookId: idField('wh'),
    status: deliveryStatusSchema,
    reason: z
      .enum(CANCEL_REASONS)
      .nullable()
      .meta({ description: 'Why the delivery was cancelled; null otherwise' }),
    attemptCount: z.int(),
    nextAttemptAt: timeField.nullable(),
    attempts: z.array(
      z.object({
        ...attemptSchema.shape,
        number: z.int().min(1),
        outcome: z.enum(OUTCOMES),
        failureReason: z
          .string()
          .nullable()
          .meta({ description: 'Why there was no access token, with `token_failed`; else null' }),
        durationMs: z.int(),
        responseHeaders: headerFields,
      }),
    ),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Delivery' });

/** The headers of the deliveries to a webhook, with credentials masked. */
export interface SentHeaders {
  headers: Header[];
  /** Milliseconds since 1970. Attempts before this time may have had other headers. */
  sinceMs: number;
}

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
  const { id, messageId, webhookId, status, reason, attemptCount, attempts } = source;
  return {
    id,
    messageId,
    webhookId,
    status,
    reason,
    attemptCount,
    nextAttemptAt: source.nextAttemptAtMs === null ? null : isoTime(source.nextAttemptAtMs),
    attempts: attempts.map((each) => {
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
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}

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

/** What the deliveries of one message to one webhook have in common. */
interface SignedHeaders extends SentHeaders {
  /** Hex HMAC SHA-256 of the payload; null when it is not known. */
  signature: string | null;
}

/** Returns the headers that the webhook has now, and since when it has them: for ever if it was never changed. */
export function sentHeadersOf(message: Message, webhook: Webhook): SignedHeaders {
  const signature = signatureOf(message, webhook);
  const isChanged = webhook.updatedAtMs > webhook.createdAtMs;
  const sinceMs = isChanged ? webhook.updatedAtMs : 0;
  return { signature, headers: maskedHeaders(message, webhook, signature), sinceMs };
}

/** For a webhook that was deleted or cannot be decrypted. */
export const UNKNOWN_HEADERS: SignedHeaders = { signature: null, headers: [], sinceMs: 0 };

/** Stands for a credential in responses. */
export const MASK = '********';
const CREDENTIAL_NAME = /auth|token|secret|key|pass|session|credential/i;

/**
 * See docs/contract.md C7.9: webhooks that send no HMAC are signed with their `secret`. Null when the
 * payload is erased.
 */
function signatureOf(message: Message, { authMethod, secret }: Webhook): string | null {
  if (message.isPayloadErased) return null;
  const sendsHmac = authMethod.method === 'hmac' && !isSignedByCompany(authMethod);
  const key = sendsHmac ? authMethod.hmacSecret : secret;
  return hmacSignature(key, message.payload);
}

/** Leaves out the timestamp and its signature: each attempt makes new ones. */
function maskedHeaders(message: Message, webhook: Webhook, signature: string | null): Header[] {
  return [
    ...DEFAULT_HEADERS,
    { key: 'User-Agent', value: `Posthorn/${VERSION}` },
    ...acceptHeaders(webhook),
    ...webhook.customHeaders.map(maskCredential),
    ...maskedAuth(webhook, signature),
    { key: 'webhook-id', value: message.id },
  ];
}

/** Masks the value of a header whose name suggests a credential. */
export function maskCredential({ key, value }: Header): Header {
  return { key, value: isCredential(key) ? MASK : value };
}

export const isCredential = (headerName: string): boolean => CREDENTIAL_NAME.test(headerName);

/** Ed25519 has no header of its own: it signs in `webhook-signature`, with each attempt. */
function maskedAuth({ authMethod }: Webhook, signature: string | null): Header[] {
  if (isSignedByCompany(authMethod)) return [];
  switch (authMethod.method) {
    case 'hmac':
      return [{ key: authMethod.hmacHeader, value: signature ?? MASK }];
    case 'basic':
      return [{ key: 'Authorization', value: `Basic ${MASK}` }];
    case 'api_key':
      return [{ key: authMethod.apiKeyHeader, value: MASK }];
    case 'oauth2':
      return [{ key: 'Authorization', value: `Bearer ${MASK}` }];
  }
}
