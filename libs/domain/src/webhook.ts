import type { FieldValues } from './webhook-fields.ts';

export type DisabledReason = NonNullable<FieldValues['disabledReason']>;

export { type AuthMethod, isSignedByCompany, type OAuth2Client } from './auth-methods.ts';
export type { EndpointTls } from './endpoint-tls.ts';
export type { Header } from './field-types.ts';

/** Where messages are delivered, with everything that a delivery needs. */
export interface Webhook extends FieldValues {
  id: string;
  companyId: string;
  createdAtMs: number;
  updatedAtMs: number;
}

/**
 * Whether a message to the webhook's app goes to it. A message without an event type goes only to
 * webhooks that receive all. (A message addressed to the webhook itself is always sent.)
 */
export function wantsEvent(
  { eventTypes }: Pick<Webhook, 'eventTypes'>,
  eventType: string | null,
): boolean {
  if (eventTypes.length === 0) return true;
  return eventType !== null && eventTypes.includes(eventType);
}

/** The characters of all texts in a value, for caches with a budget: the credentials of `oauth2` may have 7,000. */
export function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + charsOf(each), 0);
}
