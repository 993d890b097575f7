import { acceptHeaders, DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { hmacSignature } from '@posthorn/domain/request/signature.ts';
import { type Header, isSignedByCompany, type Webhook } from '@posthorn/domain/webhook.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';

/** The headers of the deliveries to a webhook, with credentials masked. */
export interface SentHeaders {
  headers: Header[];
  /** Milliseconds since 1970. Attempts before this time may have had other headers. */
  sinceMs: number;
}

/** The signature and the headers of a message to one webhook, as responses show them. */
export interface ShownHeaders {
  /** Hex HMAC SHA-256 of the payload; null when it is not known. */
  signature: string | null;
  headers: Header[];
}

type SignedHeaders = SentHeaders & ShownHeaders;

/** Returns the headers that the webhook has now; takes null for a webhook that was deleted. */
export function headersOf(source: Message, webhook: FoundWebhook | null): SignedHeaders {
  return webhook?.kind === 'opened' ? sentHeadersOf(source, webhook) : UNKNOWN_HEADERS;
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
