import {
  cancelReasonAtAcceptance,
  statusBeforeAttempts,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf, isId, timePartOf } from '@posthorn/domain/ids.ts';
import type { Delivery } from '@posthorn/domain/delivery/delivery.ts';
import { lifetimeOf, type Message, notStoredOf } from '@posthorn/domain/message.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type {
  MessageOutline,
  MessageQueries,
} from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { inSlices, type NextSlice } from '../limits/slices.ts';
import { type SentHeaders, sentHeadersOf, UNKNOWN_HEADERS } from './sent-headers.ts';
import { requireMessage, withCancellations } from './messages.ts';

interface DeliveriesQuery {
  companyId: string;
  messageId: string;
  limit: number;
  /** The webhook of the last delivery of the page before. */
  cursor?: string | undefined;
}

interface ListedDeliveries {
  /** Newest webhook first. */
  deliveries: ReadDelivery[];
  nextCursor: string | null;
}

/**
 * A page ends when its attempts have so many characters. One delivery has at most 200 attempts with 4 KiB
 * of response and 8 KiB of headers: 2.4 MB.
 */
const MAX_PAGE_CHARS = 1_048_576;
/** Deliveries that are read at once. */
const PART = 5;

/** Returns one page of the deliveries of a message. Throws ApiError 404 for an unknown message. */
export async function listDeliveries(
  deps: ReadStores,
  { companyId, messageId, limit, cursor }: DeliveriesQuery,
): Promise<ListedDeliveries> {
  const message = await requireMessage(deps, companyId, messageId);
  const newestFirst = [...message.targets].reverse();
  const rest = newestFirst.filter((id) => cursor === undefined || id < cursor);
  const deliveries = await readPage(deps, message, rest.slice(0, limit));
  const lastId = deliveries.at(-1)?.source.webhookId ?? null;
  return { deliveries, nextCursor: rest.length > deliveries.length ? lastId : null };
}

async function readPage(
  deps: ReadStores,
  message: Message,
  webhookIds: readonly string[],
): Promise<ReadDelivery[]> {
  const page: ReadDelivery[] = [];
  let chars = 0;
  for (let from = 0; from < webhookIds.length; from += PART) {
    for (const each of await deliveriesOf(deps, message, webhookIds.slice(from, from + PART))) {
      page.push(each);
      chars += charsOf(each);
      if (chars >= MAX_PAGE_CHARS) return page;
    }
  }
  return page;
}

/** Returns about how many characters the attempts of a delivery have in a response. */
function charsOf({ source, sentHeaders }: ReadDelivery): number {
  const sent = charsOfHeaders(sentHeaders.headers);
  return source.attempts.reduce(
    (sum, { response, responseHeaders }) =>
      sum + sent + (response?.length ?? 0) + charsOfHeaders(responseHeaders),
    0,
  );
}

function charsOfHeaders(headers: readonly Header[]): number {
  return headers.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}

export interface ReadStores {
  messages: Pick<MessageQueries, 'findOne' | 'outlinesAt'>;
  deliveries: Pick<DeliveryQueries, 'findMany'>;
  webhooks: Pick<WebhookStore, 'findOne' | 'cancelBeforeOf'>;
}

/** The stores behind a delivery that is read by its id. */
export interface ReadDeps extends ReadStores {
  nextSlice: NextSlice;
}

export interface ReadDelivery {
  source: Delivery;
  sentHeaders: SentHeaders;
  /** The payload of its message was erased, so that nothing can be sent again. */
  isPayloadErased: boolean;
}

/** Returns a delivery of the company, even before its first attempt; null when there is none with this id. */
export async function readDelivery(
  deps: ReadDeps,
  companyId: string,
  deliveryId: string,
): Promise<ReadDelivery | null> {
  if (!isId('dlv', deliveryId)) return null;
  const recorded = await deps.deliveries.findMany(companyId, [deliveryId]);
  const [known] = await withCancellations(deps, companyId, recorded);
  if (known) {
    const message = await deps.messages.findOne(companyId, known.messageId);
    return withHeaders(deps, message, known);
  }
  const place = await findPlace(deps, companyId, deliveryId);
  const message = place && (await deps.messages.findOne(companyId, place.message.id));
  if (!message) return null;
  const before = [deliveryBefore(message, place.webhookId)];
  const [delivery] = await withCancellations(deps, companyId, before);
  return delivery ? withHeaders(deps, message, delivery) : null;
}

/** It may have no document yet. */
async function findPlace(
  { messages, nextSlice }: ReadDeps,
  companyId: string,
  deliveryId: string,
): Promise<DeliveryPlace | null> {
  const timePart = timePartOf(deliveryId);
  for await (const places of placesAt({ messages, nextSlice }, { companyId, timePart })) {
    const place = places.find((each) => each.deliveryId === deliveryId);
    if (place) return place;
  }
  return null;
}

/** A delivery that a message has, whether it is recorded or not. */
export interface DeliveryPlace {
  deliveryId: string;
  message: MessageOutline;
  webhookId: string;
}

/** To derive so many ids takes a millisecond of CPU time. */
const IDS_PER_TURN = 500;

/**
 * Yields the deliveries of the company's messages of one millisecond: ids of deliveries and attempts contain that of
 * their message. Usually these are a few messages, but a batch of a publisher has up to 200, and while a clock was set
 * back many thousands get ids of the same millisecond. So the search takes turns, and ends with its request.
 */
export async function* placesAt(
  { messages, nextSlice }: { messages: Pick<MessageQueries, 'outlinesAt'>; nextSlice: NextSlice },
  { companyId, timePart }: { companyId: string; timePart: string },
): AsyncGenerator<DeliveryPlace[]> {
  for await (const message of inSlices(messages.outlinesAt(companyId, timePart), nextSlice)) {
    for (const [n, webhookIds] of slicesOf(message.targets, IDS_PER_TURN).entries()) {
      if (n > 0) await nextSlice();
      yield webhookIds.map((webhookId) => {
        return { deliveryId: deliveryIdOf(message.id, webhookId), message, webhookId };
      });
    }
  }
}

/** Returns the deliveries of a message to these webhooks, in their order. */
async function deliveriesOf(
  deps: ReadStores,
  message: Message,
  webhookIds: readonly string[],
): Promise<ReadDelivery[]> {
  const ids = webhookIds.map((webhookId) => deliveryIdOf(message.id, webhookId));
  const known = await deps.deliveries.findMany(message.companyId, ids);
  const byWebhook = new Map(known.map((each) => [each.webhookId, each]));
  const found = webhookIds.map((id) => byWebhook.get(id) ?? deliveryBefore(message, id));
  const shown = await withCancellations(deps, message.companyId, found);
  return Promise.all(shown.map((delivery) => withHeaders(deps, message, delivery)));
}

async function withHeaders(
  { webhooks }: ReadStores,
  message: Message | null,
  source: Delivery,
): Promise<ReadDelivery> {
  // The delivery stays readable when the secrets of its webhook cannot be decrypted.
  const webhook = await webhooks.findOne(source.companyId, source.webhookId).catch(nullIfSealed);
  return {
    source,
    sentHeaders: message && webhook ? sentHeadersOf(message, webhook) : UNKNOWN_HEADERS,
    isPayloadErased: message?.isPayloadErased ?? false,
  };
}

/** Returns null for a secret that cannot be decrypted, and throws every other error. */
function nullIfSealed(error: unknown): null {
  if (error instanceof SealedValueError) return null;
  throw error;
}

/** Returns a delivery as it is before its first attempt, while it has no document. */
function deliveryBefore(message: Message, webhookId: string): Delivery {
  const { id, companyId, appId, createdAtMs } = message;
  const status = statusBeforeAttempts(message, webhookId);
  return {
    id: deliveryIdOf(id, webhookId),
    messageId: id,
    webhookId,
    companyId,
    appId,
    status,
    reason: cancelReasonAtAcceptance(message, webhookId),
    attemptCount: 0,
    attempts: [],
    nextAttemptAtMs: status === 'pending' ? (message.deliverAtMs ?? createdAtMs) : null,
    waiting: null,
    waitingSinceMs: null,
    createdAtMs,
    updatedAtMs: createdAtMs,
    ...notStoredOf(message),
    ...lifetimeOf(message),
  };
}
