import { DEFAULT_HEADERS } from '@posthorn/domain/delivery-headers.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { hmacKey, hmacSignature } from '@posthorn/domain/signature.ts';
import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import { VERSION } from '@posthorn/platform/metrics.ts';
import type { Sendable } from './delivery.ts';

/** A webhook that was never changed has had its headers from its first delivery on. */
export function sendableOf(message: Message, webhook: Webhook): Sendable {
  const isChanged = webhook.updatedAtMs > webhook.createdAtMs;
  const sinceMs = isChanged ? webhook.updatedAtMs : 0;
  return { headers: shownHeaders(message, webhook), sinceMs };
}

export const NOTHING_TO_SHOW: Sendable = { headers: [], sinceMs: 0 };

const MASK = '********';
const CREDENTIAL_NAME = /auth|token|secret|key|pass|session|credential/i;

/** The document's HMAC; webhooks that authenticate otherwise are signed with their secret. */
export function signatureOf(message: Message, { authMethod, secret }: Webhook): string {
  const key = authMethod.method === 'hmac' ? authMethod.hmacSecret : secret;
  return hmacSignature(hmacKey(key), message.payload);
}

/** What is sent, credentials masked; timestamp and its signature are made with each attempt. */
export function shownHeaders(message: Message, webhook: Webhook): Header[] {
  return [
    ...DEFAULT_HEADERS,
    { key: 'User-Agent', value: `Posthorn/${VERSION}` },
    ...webhook.customHeaders.map(maskCredentials),
    shownAuth(message, webhook),
    { key: 'webhook-id', value: message.id },
  ];
}

function maskCredentials({ key, value }: Header): Header {
  return { key, value: CREDENTIAL_NAME.test(key) ? MASK : value };
}

function shownAuth(message: Message, webhook: Webhook): Header {
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
