import type { Schemas } from './api/client.ts';
import type { UndeliveredFilter } from './api/messages.ts';
import {
  AUDIT_ACTIONS,
  type AuditAction,
  type Range,
  RANGES,
  FILTER_REASONS,
} from './api/words.ts';

/** What the addresses of pages may say behind `?`. What is not known there is left out. */
type Raw = Record<string, unknown>;

const STATUSES = ['pending', 'delivered', 'exhausted', 'cancelled'] as const;
const MESSAGE_STATUSES = [...STATUSES, 'no_target'] as const;
export const TABS = ['overview', 'attempts', 'settings', 'testing'] as const;
export type WebhookTab = (typeof TABS)[number];

export interface OverviewSearch {
  range?: Range | undefined;
}

export function overviewSearch({ range }: Raw): OverviewSearch {
  return oneOf(RANGES, range, (found) => ({ range: found }));
}

export interface WebhookListSearch {
  q?: string | undefined;
  appId?: string | undefined;
}

export function webhookListSearch({ q, appId }: Raw): WebhookListSearch {
  return {
    ...text(q, (found) => ({ q: found })),
    ...text(appId, (found) => ({ appId: found })),
  };
}

export interface NewWebhookSearch {
  appId?: string | undefined;
  /** The event type to begin with. */
  eventType?: string | undefined;
}

export function newWebhookSearch({ appId, eventType }: Raw): NewWebhookSearch {
  return {
    ...text(appId, (found) => ({ appId: found })),
    ...text(eventType, (found) => ({ eventType: found })),
  };
}

export interface EventTypesSearch {
  projectId?: string | undefined;
  q?: string | undefined;
  /** The event type that is shown; a path would end in a file name, such as `order.paid`. */
  name?: string | undefined;
}

export function eventTypesSearch({ projectId, q, name }: Raw): EventTypesSearch {
  return {
    ...text(projectId, (found) => ({ projectId: found })),
    ...text(q, (found) => ({ q: found })),
    ...text(name, (found) => ({ name: found })),
  };
}

export interface WebhookSearch {
  tab?: WebhookTab | undefined;
  /** Of the messages in the tab of attempts. */
  status?: Schemas['DeliveryStatus'] | undefined;
  eventType?: string | undefined;
}

export function webhookSearch({ tab, status, eventType }: Raw): WebhookSearch {
  return {
    ...text(eventType, (found) => ({ eventType: found })),
    ...oneOf(TABS, tab, (found) => ({ tab: found })),
    ...oneOf(STATUSES, status, (found) => ({ status: found })),
  };
}

export interface MessageSearch {
  tag?: string | undefined;
  externalId?: string | undefined;
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
  status?: Schemas['MessageStatus'] | undefined;
  since?: string | undefined;
  until?: string | undefined;
  /** The message of the side panel. */
  open?: string | undefined;
}

export function messageSearch(raw: Raw): MessageSearch {
  const { appId, webhookId, eventType, tag, externalId, status, since, until, open } = raw;
  return {
    ...text(eventType, (found) => ({ eventType: found })),
    ...text(tag, (found) => ({ tag: found })),
    ...text(externalId, (found) => ({ externalId: found })),
    ...text(appId, (found) => ({ appId: found })),
    ...text(webhookId, (found) => ({ webhookId: found })),
    ...oneOf(MESSAGE_STATUSES, status, (found) => ({ status: found })),
    ...text(since, (found) => ({ since: found })),
    ...text(until, (found) => ({ until: found })),
    ...text(open, (found) => ({ open: found })),
  };
}

export const UNDELIVERED = ['pending', 'exhausted', 'cancelled'] as const;
export const WAITS = ['hold', 'order', 'time'] as const;

export function deliverySearch(raw: Raw): UndeliveredFilter {
  const { status, waiting, reason, appId, webhookId, eventType, since, until } = raw;
  return {
    ...oneOf(UNDELIVERED, status, (found) => ({ status: found })),
    ...oneOf(WAITS, waiting, (found) => ({ waiting: found })),
    ...oneOf(FILTER_REASONS, reason, (found) => ({ reason: found })),
    ...text(since, (found) => ({ since: found })),
    ...text(until, (found) => ({ until: found })),
    ...text(appId, (found) => ({ appId: found })),
    ...text(webhookId, (found) => ({ webhookId: found })),
    ...text(eventType, (found) => ({ eventType: found })),
  };
}

export interface ResendListSearch {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export function resendListSearch({ appId, webhookId }: Raw): ResendListSearch {
  return {
    ...text(appId, (found) => ({ appId: found })),
    ...text(webhookId, (found) => ({ webhookId: found })),
  };
}

export interface CircuitSearch {
  appId?: string | undefined;
}

export function circuitSearch({ appId }: Raw): CircuitSearch {
  return text(appId, (found) => ({ appId: found }));
}

export interface PeopleSearch {
  /** The person of the side panel. */
  open?: string | undefined;
}

export function peopleSearch({ open }: Raw): PeopleSearch {
  return text(open, (found) => ({ open: found }));
}

export interface ApiKeySearch {
  /** The person who made them. */
  createdBy?: string | undefined;
}

export function apiKeySearch({ createdBy }: Raw): ApiKeySearch {
  return text(createdBy, (found) => ({ createdBy: found }));
}

export interface AuditSearch {
  action?: AuditAction | undefined;
  actor?: string | undefined;
  targetId?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

export function auditSearch({ action, actor, targetId, since, until }: Raw): AuditSearch {
  return {
    ...oneOf(AUDIT_ACTIONS, action, (found) => ({ action: found })),
    ...text(actor, (found) => ({ actor: found })),
    ...text(targetId, (found) => ({ targetId: found })),
    ...text(since, (found) => ({ since: found })),
    ...text(until, (found) => ({ until: found })),
  };
}

export interface FailureSearch extends OverviewSearch {
  appId?: string | undefined;
}

export function failureSearch(raw: Raw): FailureSearch {
  return { ...overviewSearch(raw), ...text(raw.appId, (found) => ({ appId: found })) };
}

export interface SendSearch {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export function sendSearch({ appId, webhookId }: Raw): SendSearch {
  return {
    ...text(appId, (found) => ({ appId: found })),
    ...text(webhookId, (found) => ({ webhookId: found })),
  };
}

function text<Found>(
  value: unknown,
  found: (text: string) => Found,
): Found | Record<string, never> {
  return typeof value === 'string' && value !== '' ? found(value) : {};
}

function oneOf<Value extends string, Found>(
  values: readonly Value[],
  value: unknown,
  found: (value: Value) => Found,
): Found | Record<string, never> {
  const known = values.find((each) => each === value);
  return known === undefined ? {} : found(known);
}
