import type { Schemas } from './client.ts';

type Outcome = Schemas['Delivery']['attempts'][number]['outcome'];

const WORDS: Record<Outcome, string> = {
  success: 'accepted it',
  http_3xx: 'answered with a redirect, which is not followed',
  http_4xx: 'refused it',
  http_429: 'asked to slow down',
  http_5xx: 'failed to process it',
  timeout: 'took longer than it may',
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

export type Reason = NonNullable<Schemas['Delivery']['reason']>;

const CANCEL_WORDS: Record<Reason, string> = {
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

/** How soon statistics follow (docs/contract.md C18.4). */
export const COUNTED_WITHIN = '20 seconds, and within minutes while thousands of webhooks are busy';

/** Why a delivery ended without success before the end of its schedule. */
export const REASONS = Object.keys(CANCEL_WORDS) as Reason[];

/** What the list of deliveries is filtered by: `all_attempts` for those that ended without such a reason. */
export const FILTER_REASONS = [...REASONS, 'all_attempts'] as const;

export type FilterReason = (typeof FILTER_REASONS)[number];

export function cancelWords(reason: Reason): string {
  return CANCEL_WORDS[reason];
}

export type AuditAction = Schemas['AuditEvent']['action'];

/** What was done, in words; in the order in which they are offered. */
export const ACTION_WORDS: Record<AuditAction, string> = {
  'api_key.created': 'API key created',
  'api_key.rotated': 'API key rotated',
  'api_key.revoked': 'API key revoked',
  'signing_key.rotated': 'Signing key rotated',
  'project.created': 'Project created',
  'project.updated': 'Project changed',
  'project.deleted': 'Project deleted',
  'event_type.created': 'Event type created',
  'event_type.updated': 'Event type changed',
  'event_type.deleted': 'Event type deleted',
  'event_type.imported': 'Event types imported',
  'app.created': 'App created',
  'app.updated': 'App changed',
  'app.deleted': 'App deleted',
  'app.held': 'App put on hold',
  'app.resumed': 'App resumed',
  'webhook.created': 'Webhook created',
  'webhook.updated': 'Webhook changed',
  'webhook.deleted': 'Webhook deleted',
  'webhook.held': 'Webhook put on hold',
  'webhook.resumed': 'Webhook resumed',
  'webhook.secret_rotated': 'Secret rotated',
  'webhook.secrets_read': 'Secrets shown',
  'webhook.tested': 'Test message sent',
  'webhook.ordering_key_skipped': 'Ordering key skipped',
  'webhook.pending_cancelled': 'Pending deliveries cancelled',
  'delivery.cancelled': 'Delivery cancelled',
  'deliveries.cancelled': 'Deliveries cancelled by filter',
  'message.payload_erased': 'Payload erased',
  'delivery.responses_erased': 'Responses erased',
  'resend.started': 'Resend started',
  'replay.started': 'Replay started',
  'resend.aborted': 'Resend aborted',
  'dashboard_link.created': 'Sign-in link made',
  'dashboard.signed_in': 'Signed in by link',
  'portal_link.created': 'Portal link made',
  'portal_link.revoked': 'Portal link ended',
  'portal.signed_in': 'Portal opened',
  'portal_settings.updated': 'Portal settings changed',
  'person.signed_in': 'Person signed in',
  'person.signed_out': 'Person signed out',
  'person.invited': 'Person invited',
  'person.updated': 'Person changed',
  'person.removed': 'Person removed',
  'person.sessions_ended': 'Sessions of a person ended',
  'invitation.revoked': 'Invitation revoked',
  'people_settings.updated': 'Roles of groups changed',
  'company.created': 'Company created',
  'company.suspended': 'Company suspended',
  'company.resumed': 'Company resumed',
  'company.exported': 'Company exported',
  'company.deleted': 'Company deleted',
  'dead_letters.replayed': 'Dead letters replayed',
  'ingest_rejects.replayed': 'Rejected records replayed',
  'encryption_keys.rotated': 'Encryption keys rotated',
};

export const AUDIT_ACTIONS = Object.keys(ACTION_WORDS) as AuditAction[];

/** The spans of time that roll-ups are shown for. */
export const RANGES = ['1h', '24h', '7d', '30d'] as const;
export type Range = (typeof RANGES)[number];

/** What a webhook is called: its name, and its address without the scheme. Without a name of its own, that is its host. */
export function webhookWords({ name, url }: { name: string; url: string }): {
  name: string;
  address: string | null;
} {
  const address = url.replace(/^https?:\/\//, '');
  const isNamed = name !== new URL(url).host.slice(0, MOST_NAME_CHARS);
  return isNamed ? { name, address } : { name: address, address: null };
}

const MOST_NAME_CHARS = 100;
