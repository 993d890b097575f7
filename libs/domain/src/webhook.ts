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
 * Whether the webhook selects the event type of a message to its app. Only webhooks that receive all select a message
 * without one. (A message addressed to the webhook itself is always sent.)
 */
export function wantsEvent(
  { eventTypes }: Pick<Webhook, 'eventTypes'>,
  eventType: string | null,
): boolean {
  if (eventTypes.length === 0) return true;
  return eventType !== null && eventTypes.some((each) => selects(each, eventType));
}

function selects(selector: string, eventType: string): boolean {
  if (!selector.endsWith('*')) return selector === eventType;
  return eventType.startsWith(selector.slice(0, -1));
}

/** Returns the entries of `eventTypes` that select the event type: its name, and its beginnings with a `*`. */
export function selectorsOf(eventType: string): string[] {
  const beginnings = Array.from(eventType.matchAll(/[.:/]/g), ({ index }) => {
    return `${eventType.slice(0, index + 1)}*`;
  });
  return [eventType, ...beginnings];
}

/** Whether deliveries to the webhook may have to wait for earlier ones (docs/contract.md C29). */
export function isOrdered({ disabled, ordering }: Pick<Webhook, 'disabled' | 'ordering'>): boolean {
  return ordering !== 'none' && !disabled;
}

/** The characters of all texts in a value, for caches with a budget: the credentials of `oauth2` may have 7,000. */
export function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + charsOf(each), 0);
}
