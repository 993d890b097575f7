import type { Schemas } from '../api/client.ts';

export type Outcome = Schemas['Delivery']['attempts'][number]['outcome'];

const WORDS: Record<Outcome, string> = {
  success: 'accepted it',
  http_3xx: 'answered with a redirect, which is not followed',
  http_4xx: 'refused it',
  http_429: 'asked to slow down',
  http_5xx: 'failed to process it',
  timeout: 'took longer than 15 s',
  dns_error: 'has a host name that does not resolve',
  connect_error: 'refused the connection',
  tls_error: 'failed the TLS handshake',
  egress_blocked: 'has an address to which deliveries may not go',
  response_too_large: 'sent a response with headers that are too large',
  aborted: 'was interrupted by a stop of Posthorn',
  token_failed: 'got nothing: there was no access token',
};

/** Returns what the endpoint did, as the rest of a sentence that it begins. */
export function outcomeWords(outcome: string, statusCode: number | null = null): string {
  const words = isOutcome(outcome) ? WORDS[outcome] : outcome;
  return statusCode === null ? words : `${words} (${statusCode})`;
}

function isOutcome(text: string): text is Outcome {
  return text in WORDS;
}

const CANCEL_WORDS: Record<NonNullable<Schemas['Delivery']['reason']>, string> = {
  webhook_deleted: 'The webhook was deleted before the delivery ended.',
  webhook_disabled: 'The webhook was disabled before the delivery ended.',
  message_missing: 'The message is not stored any more.',
  cancelled_by_client: 'It was cancelled, here or with an API key.',
  expired_while_waiting: 'It waited until the day before it expired.',
  expired: 'The message expired before the delivery ended.',
  payload_erased: 'The payload of the message was erased before the delivery ended.',
  gone: 'The endpoint is gone: it answered 410.',
  not_retryable: 'The endpoint answered a status after which the webhook wants no further attempt.',
  aborted: 'The endpoint wanted no further attempt.',
};

export function cancelWords(reason: NonNullable<Schemas['Delivery']['reason']>): string {
  return CANCEL_WORDS[reason];
}
