import { charsOfFields, type KeptFields } from './message-fields.ts';

/** An accepted payload and its targets. Stored once; only its payload may be erased later. */
export interface Message extends NotStored, Lifetime, KeptFields {
  id: string;
  companyId: string;
  /** Null when it was addressed to one webhook. */
  appId: string | null;
  /** The text of `payload`, byte for byte as the client wrote it. */
  payload: string;
  /** The payload was erased, after the last delivery succeeded or for a client, and is '' here. */
  isPayloadErased?: true;
  /** Of an erased payload: the records of its first attempts have it, as long as Kafka keeps them. */
  isPayloadInRecords?: true;
  /** Webhook ids, oldest first. */
  targets: string[];
  /** Why it has no target; absent when it has some. */
  noTargetReason?: NoTargetReason;
  /** Webhooks that got the message by a replay, in no order; absent without any. None of them is in `targets`. */
  addedTargets?: string[];
  /** The gateway process that stored it and has to publish it. */
  publisherId: string;
  eventType: string | null;
  /** The targets that were disabled when the message was accepted. A set, because there may be 10,000 targets. */
  disabledTargets: ReadonlySet<string>;
  /** Null when the client sent no key. */
  idempotency: Idempotency | null;
  /**
   * It has an ordering key, and a target had `ordering` when it was accepted: its records carry the key. Absent for any
   * other message.
   */
  isOrdered?: true;
  /** No attempt begins before this time, in milliseconds since 1970. Absent for at once. */
  deliverAtMs?: number;
  /** A test message of a webhook; its first attempt has a trigger of its own. */
  isTest?: true;
  requestId: string;
  /** W3C Trace Context, as the client sent it with the message. */
  traceparent?: string;
  createdAtMs: number;
}

/** `event_type`: its app has webhooks, and none of them receives its event type. */
export const NO_TARGET_REASONS = ['no_webhook', 'event_type', 'filter'] as const;

export type NoTargetReason = (typeof NO_TARGET_REASONS)[number];

/** Returns the webhooks that have a delivery of the message, oldest first. */
export function allTargetsOf({
  targets,
  addedTargets,
}: Pick<Message, 'targets' | 'addedTargets'>): string[] {
  // Ids grow with the time.
  return addedTargets ? [...targets, ...addedTargets].sort() : targets;
}

/** Recognizes the repeat of a request. Stored in the message that the first request made. */
export interface Idempotency {
  /** The key as the client wrote it; unique within the company for 24 hours. */
  key: string;
  /** SHA-256 of the request's body, hex. */
  bodyHash: string;
  /** The first response, sealed. */
  answer: string;
  /** The record that the message was ingested from, as `placeKeyOf` writes its place; absent for a request of the API. */
  ingestedFrom?: string;
}

/** The characters of a message that its client has written, as far as they are known, for bounds of memory. */
export function charsOfMessage(message: KeptFields & { payload?: string | undefined }): number {
  return (message.payload?.length ?? 0) + charsOfFields(message);
}

/** The disabled targets of a message that has none: nearly all messages share this one. */
export const NONE_DISABLED: ReadonlySet<string> = new Set();

/** The limits of a message: HTTP body in bytes, nesting of the payload in levels. */
export const MAX_BODY_BYTES = 262_144;
export const MAX_PAYLOAD_DEPTH = 64;

/** What a project refuses of its messages by its catalogue (docs/contract.md C28.6). */
export const EVENT_TYPE_POLICIES = ['open', 'known', 'validated'] as const;

export type EventTypePolicy = (typeof EVENT_TYPE_POLICIES)[number];

/** How long an app keeps its payloads. `until-delivered`: until every delivery of the message is delivered. */
export const STORE_PAYLOADS = ['retained', 'until-delivered'] as const;

export type StorePayloads = (typeof STORE_PAYLOADS)[number];

/**
 * The storage settings of an app. Absent fields have the defaults `true` and `retained` (docs/contract.md C5.9,
 * C5.10).
 */
export interface StorageSettings {
  storeResponses?: boolean | undefined;
  storePayloads?: StorePayloads | undefined;
}

/**
 * The parts of a message and its attempts that its app did not want stored when the message was accepted. Every
 * record and delivery of the message carries these options; nearly all are empty.
 */
export interface NotStored {
  /** The payload is erased once every delivery is delivered, and is in no record. */
  erasesPayload?: true;
  /** Attempts are stored without the response of the endpoint. */
  omitsResponses?: true;
}

export function notStoredBy({ storeResponses, storePayloads }: StorageSettings): NotStored {
  return {
    ...(storePayloads === 'until-delivered' && { erasesPayload: true }),
    ...(storeResponses === false && { omitsResponses: true }),
  };
}

/**
 * Returns the message with only those targets to which attempts are made: the others were disabled when it was accepted, so
 * nothing is published or recorded for them.
 */
export function forAttempts<Accepted extends Pick<Message, 'targets' | 'disabledTargets'>>(
  message: Accepted,
): Accepted {
  const { targets, disabledTargets } = message;
  if (disabledTargets.size === 0) return message;
  return { ...message, targets: targets.filter((target) => !disabledTargets.has(target)) };
}

/** Returns these options without the other fields of `source`. */
export function notStoredOf(source: NotStored): NotStored {
  const { erasesPayload, omitsResponses } = source;
  return { ...(erasesPayload && { erasesPayload }), ...(omitsResponses && { omitsResponses }) };
}

/** The end that a client has given to a message, in milliseconds since 1970. Nearly all messages have none. */
export interface Lifetime {
  /** No attempt begins from then on (docs/contract.md C7.15). */
  expiresAtMs?: number;
  /** Nothing of the message is shown from then on, and MongoDB removes it (docs/contract.md C7.16). */
  removeAtMs?: number;
}

const UNLIMITED: Lifetime = {};

/** The place of a delivery in the order of its key. */
export interface InOrder {
  /** Absent unless a webhook of its message had `ordering` when that was accepted. */
  orderingKey?: string;
  /** Absent while the delivery is in the memory of its dispatcher only (delivery/sequence.ts). */
  position?: number;
}

const UNORDERED: InOrder = {};

/** Returns the place without the other fields of `source`: every record of the delivery carries it. */
export function orderOf({ orderingKey, position }: InOrder): InOrder {
  if (orderingKey === undefined) return UNORDERED;
  return position === undefined ? { orderingKey } : { orderingKey, position };
}

/** Returns the key that the records of a message carry. */
export function orderOfMessage(message: Pick<Message, 'isOrdered' | 'orderingKey'>): InOrder {
  return message.isOrdered ? orderOf(message) : UNORDERED;
}

/** Returns the lifetime without the other fields of `source`: every record and delivery of the message carries it. */
export function lifetimeOf(source: Lifetime): Lifetime {
  const { expiresAtMs, removeAtMs } = source;
  // Nothing is allocated for other messages.
  if (expiresAtMs === undefined && removeAtMs === undefined) return UNLIMITED;
  return {
    ...(expiresAtMs !== undefined && { expiresAtMs }),
    ...(removeAtMs !== undefined && { removeAtMs }),
  };
}
