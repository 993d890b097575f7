import { maskedDeliveryHeaders } from '@posthorn/domain/request/delivery-headers.ts';
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
  const { id: messageId, eventType } = message;
  const parts = { messageId, eventType, signature, userAgent: `Posthorn/${VERSION}` };
  return { signature, headers: maskedDeliveryHeaders(webhook, parts), sinceMs };
}

/** For a webhook that was deleted or cannot be decrypted. */
export const UNKNOWN_HEADERS: SignedHeaders = { signature: null, headers: [], sinceMs: 0 };

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
