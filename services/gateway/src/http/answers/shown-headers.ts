import { DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { hmacSignature } from '@posthorn/domain/request/signature.ts';
import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { Sendable } from './delivery.ts';

/** What can be told of a message's deliveries to one webhook. */
export interface Shown extends Sendable {
  signature: string | null;
}

/** A webhook that was never changed has had its headers from its first delivery on. */
export function shownOf(message: Message, webhook: Webhook): Shown {
  const signature = signatureOf(message, webhook);
  const isChanged = webhook.updatedAtMs > webhook.createdAtMs;
  const sinceMs = isChanged ? webhook.updatedAtMs : 0;
  return { signature, headers: shownHeaders(message, webhook, signature), sinceMs };
}

export const NOTHING_TO_SHOW: Shown = { signature: null, headers: [], sinceMs: 0 };

const MASK = '********';
const CREDENTIAL_NAME = /auth|token|secret|key|pass|session|credential/i;

/** The document's HMAC; webhooks that authenticate otherwise are signed with their secret. */
function signatureOf(message: Message, { authMethod, secret }: Webhook): string {
  const key = authMethod.method === 'hmac' ? authMethod.hmacSecret : secret;
  return hmacSignature(key, message.payload);
}

/** What is sent, credentials masked; timestamp and its signature are made with each attempt. */
function shownHeaders(message: Message, webhook: Webhook, signature: string): Header[] {
  return [
    ...DEFAULT_HEADERS,
    { key: 'User-Agent', value: `Posthorn/${VERSION}` },
    ...webhook.customHeaders.map(maskCredentials),
    shownAuth(webhook, signature),
    { key: 'webhook-id', value: message.id },
  ];
}

function maskCredentials({ key, value }: Header): Header {
  return { key, value: CREDENTIAL_NAME.test(key) ? MASK : value };
}

function shownAuth({ authMethod }: Webhook, signature: string): Header {
  switch (authMethod.method) {
    case 'hmac':
      return { key: authMethod.hmacHeader, value: signature };
    case 'basic':
      return { key: 'Authorization', value: `Basic ${MASK}` };
    case 'api_key':
      return { key: authMethod.apiKeyHeader, value: MASK };
  }
}
