import type { Delivery, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { DEFAULT_HEADERS } from '@posthorn/domain/delivery-headers.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { messageStatus, type Message } from '@posthorn/domain/message.ts';
import { hmacKey, hmacSignature } from '@posthorn/domain/signature.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { VERSION } from '@posthorn/platform/metrics.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import { describeAttempt, isoTime } from './describe-delivery.ts';

const MASK = '********';

/** `data` of an accepted message: nothing has been attempted yet. */
export function describeAccepted(message: Message, webhooks: readonly WebhookDocument[]): object {
  const oldest = webhooks[0];
  const createdAt = isoTime(message.createdAtMs);
  const headers = oldest ? shownHeaders(message, oldest) : [];
  return {
    id: message.id,
    delivered: false,
    payload: message.payload,
    signature: oldest ? signatureOf(message, oldest) : null,
    headers,
    createdAt,
    updatedAt: createdAt,
    deliveryAttempt: oldest ? plannedAttempt(message, oldest, headers) : null,
    deliveries: webhooks.map(({ _id }) => summary(message.id, _id, undefined)),
  };
}

/** `data` of a message as it stands now; `deliveries` are those that have a document. */
export function describeMessage(
  message: Message,
  deliveries: readonly Delivery[],
  oldest: WebhookDocument | null,
): object {
  const byWebhook = new Map(deliveries.map((delivery) => [delivery.webhookId, delivery]));
  const statuses = message.targets.map((id) => byWebhook.get(id)?.status ?? 'pending');
  const status = messageStatus(statuses);
  const headers = oldest ? shownHeaders(message, oldest) : [];
  const lastAttempt = byWebhook.get(message.targets[0] ?? '')?.attempts.at(-1);
  return {
    id: message.id,
    appId: message.appId,
    status,
    delivered: statuses.length > 0 && status === 'delivered',
    payload: message.payload,
    signature: oldest ? signatureOf(message, oldest) : null,
    headers,
    createdAt: isoTime(message.createdAtMs),
    updatedAt: isoTime(Math.max(message.createdAtMs, ...deliveries.map((d) => d.updatedAtMs))),
    deliveryAttempt: lastAttempt
      ? { ...describeAttempt(lastAttempt), headers }
      : oldest && plannedAttempt(message, oldest, headers),
    deliveries: message.targets.map((id) => summary(message.id, id, byWebhook.get(id))),
  };
}

interface DeliverySummary {
  id: string;
  webhookId: string;
  status: DeliveryStatus;
  attemptCount: number;
}

function summary(
  messageId: string,
  webhookId: string,
  delivery: Delivery | undefined,
): DeliverySummary {
  return {
    id: deliveryIdOf(messageId, webhookId),
    webhookId,
    status: delivery?.status ?? 'pending',
    attemptCount: delivery?.attempts.length ?? 0,
  };
}

/** The first attempt before it is made; its id is known because ids of attempts are derived. */
function plannedAttempt(message: Message, webhook: WebhookDocument, headers: Header[]): object {
  const createdAt = isoTime(message.createdAtMs);
  return {
    id: attemptIdOf(deliveryIdOf(message.id, webhook._id), 1),
    processed: false,
    resend: false,
    statusCode: null,
    response: null,
    headers,
    createdAt,
    updatedAt: createdAt,
  };
}

/** The document's HMAC; webhooks that authenticate otherwise are signed with their secret. */
function signatureOf(message: Message, { authMethod, secret }: WebhookDocument): string {
  const key = authMethod.method === 'hmac' ? authMethod.hmacSecret : secret;
  return hmacSignature(hmacKey(key), message.payload);
}

/** What will be sent, credentials masked; timestamp and its signature are made with each attempt. */
function shownHeaders(message: Message, webhook: WebhookDocument): Header[] {
  return [
    ...DEFAULT_HEADERS,
    { key: 'User-Agent', value: `Posthorn/${VERSION}` },
    ...webhook.customHeaders.map(maskCredentials),
    shownAuth(message, webhook),
    { key: 'webhook-id', value: message.id },
  ];
}

function maskCredentials({ key, value }: Header): Header {
  return { key, value: /authorization|token|secret|key/i.test(key) ? MASK : value };
}

function shownAuth(message: Message, webhook: WebhookDocument): Header {
  const { authMethod } = webhook;
  switch (authMethod.method) {
    case 'hmac':
      return { key: authMethod.hmacHeader, value: signatureOf(message, webhook) };
    case 'basic':
      return { key: 'Authorization', value: `Basic ${MASK}` };
    case 'api_key':
      return { key: authMethod.apiKeyHeader, value: MASK };
  }
}
