import { type SettledDelivery, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { deliveryIdOf, timePartOf } from '@posthorn/domain/ids.ts';
import { notStoredOf } from '@posthorn/domain/message.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { setImmediate as pause } from 'node:timers/promises';
import { slicesOf } from '../../async/fair-queue.ts';
import { documentsIn } from '../company-documents.ts';
import type { Database, Days } from '../days/days.ts';
import { readUpTo } from '../days/read-days.ts';
import type { MessageDocument } from '../documents.ts';
import { createDeliveryStore, recordedAmong } from './deliveries.ts';
import {
  type DeliveryPage,
  type DeliveryPosition,
  type PageOrder,
  positionOf,
} from './delivery-pages.ts';
import { lifetimeIn } from './messages.ts';

/**
 * A delivery that its message states: its webhook was disabled at acceptance, so that it is cancelled (docs/contract.md
 * C10.8). It has no document before a resend, and everything about it follows from its message.
 */
export interface StatedDelivery {
  id: string;
  messageId: string;
  webhookId: string;
  appId: string | null;
}

/** Bounds of ids: `beforeId` is exclusive. */
interface IdSpan {
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/**
 * Reads what messages state, without the deliveries that have a document. A page examines 2,500 at most, and so may have
 * none while others follow: after a resend of many, all of them have one.
 */
export interface StatedDeliveries {
  /** Those of messages in the span, the newest message first. */
  ofCompany: (
    companyId: string,
    span: IdSpan & { after?: DeliveryPosition | undefined },
    limit: number,
  ) => Promise<DeliveryPage<StatedDelivery>>;
  /** Those to one webhook whose own ids are in the span. Here `fromId` is exclusive. */
  ofWebhook: (
    of: WebhookOf,
    span: IdSpan,
    page: { limit: number; order: Exclude<PageOrder, 'newest_messages'> },
  ) => Promise<DeliveryPage<StatedDelivery>>;
  /** The messages in the span that state any, newest first. */
  messageIds: (companyId: string, span: IdSpan, limit: number) => Promise<string[]>;
  /** How many there are to these webhooks among the first `limit`, by their own ids. Here `fromId` is exclusive. */
  count: (
    of: Omit<WebhookOf, 'webhookId'> & { webhookIds: readonly string[] },
    span: IdSpan,
    limit: number,
  ) => Promise<number>;
  /** Makes the documents of those in the page of a resend, so that it can mark them. Repeating it changes nothing. */
  record: (resend: Pick<Resend, 'companyId' | 'webhookId' | 'page'>) => Promise<void>;
}

interface WebhookOf {
  companyId: string;
  webhookId: string;
  /** The app of the message. */
  appId?: string | undefined;
}

/** To derive the ids of so many takes a millisecond. */
const SLICE = 500;
/** A page ends when it has examined so many: 20 ms. */
const MAX_EXAMINED = 2_500;
/** 10 MB of messages to 10,000 disabled webhooks each. */
const BATCH = 32;
/** Ids of one look-up. */
const MAX_IDS = 5_000;

export function createStatedDeliveries({ days }: Pick<Database, 'days'>): StatedDeliveries {
  return {
    ofCompany: (companyId, span, limit) => readOfCompany(days, companyId, span, limit),
    ofWebhook: (of, span, page) => readOfWebhook(days, of, span, page),
    messageIds: (companyId, wanted, limit) => {
      const span = days.messages.kept(wanted, 'msg');
      return readUpTo(days.messages.within(span).reverse(), limit, async (documents, left) => {
        const own = documentsIn<'messages'>(documents, companyId);
        const stating = own.find({ ...STATING, _id: boundsOf(span) }).sort({ _id: -1 });
        const found = await stating.limit(left).project<{ _id: string }>({ _id: 1 }).toArray();
        return found.map(({ _id }) => _id);
      });
    },
    count: (of, span, limit) => countOf(days, of, span, limit),
    record: (resend) => record(days, resend),
  };
}

/** As the index of such messages has it. */
const STATING = { disabledTargets: { $exists: true } } as const;

type StatingDocument = Pick<MessageDocument, '_id' | 'appId' | 'disabledTargets'>;

async function readOfCompany(
  days: Days,
  companyId: string,
  { after, ...wanted }: IdSpan & { after?: DeliveryPosition | undefined },
  limit: number,
): Promise<DeliveryPage<StatedDelivery>> {
  const found: StatedDelivery[] = [];
  let examined = 0;
  const stated = deliveriesBehind(messagesOf(days, companyId, wanted, after), after);
  for await (const part of inParts(stated, () => Math.min(SLICE, limit))) {
    found.push(...(await withoutRecorded(days, part)));
    examined += part.length;
    const last = part.at(-1);
    if (last && (found.length >= limit || examined >= MAX_EXAMINED)) {
      return { found, examined, readTo: positionOf(last) };
    }
  }
  return { found, examined, readTo: null };
}

/** The last message of the page before is read again: 10,000 more of its deliveries may follow. */
async function* messagesOf(
  { messages }: Days,
  companyId: string,
  { fromId, beforeId }: IdSpan,
  after: DeliveryPosition | undefined,
): AsyncGenerator<StatingDocument> {
  const next = after && `${after.messageId}~`;
  const isNext = next !== undefined && (beforeId === undefined || next < beforeId);
  const span = messages.kept({ fromId, beforeId: isNext ? next : beforeId }, 'msg');
  for (const documents of messages.within(span).reverse()) {
    yield* documentsIn<'messages'>(documents, companyId)
      .find({ ...STATING, _id: boundsOf(span), ...messages.notRemoved() })
      .sort({ _id: -1 })
      .project<StatingDocument>({ appId: 1, disabledTargets: 1 })
      .batchSize(BATCH);
  }
}

async function* deliveriesBehind(
  messages: AsyncIterable<StatingDocument>,
  after: DeliveryPosition | undefined,
): AsyncGenerator<StatedDelivery> {
  for await (const message of messages) {
    const stated = await statedBy(message, message.disabledTargets ?? []);
    const isBehind = ({ id }: StatedDelivery): boolean =>
      after?.messageId !== message._id || id < after.deliveryId;
    yield* stated.filter(isBehind).sort((a, b) => (a.id < b.id ? 1 : -1));
  }
}

async function statedBy(
  { _id: messageId, appId }: StatingDocument,
  webhookIds: readonly string[],
): Promise<StatedDelivery[]> {
  const stated: StatedDelivery[] = [];
  for (const slice of slicesOf(webhookIds, SLICE)) {
    if (slice.length === SLICE) await pause();
    for (const webhookId of slice) {
      stated.push({ id: deliveryIdOf(messageId, webhookId), messageId, webhookId, appId });
    }
  }
  return stated;
}

async function* inParts<Item>(
  items: AsyncIterable<Item>,
  size: () => number,
): AsyncGenerator<Item[]> {
  let part: Item[] = [];
  for await (const item of items) {
    part.push(item);
    if (part.length < size()) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

async function readOfWebhook(
  days: Days,
  of: WebhookOf,
  span: IdSpan,
  { limit, order }: { limit: number; order: 'newest' | 'oldest' },
): Promise<DeliveryPage<StatedDelivery>> {
  const found: StatedDelivery[] = [];
  let examined = 0;
  let left = span;
  for (let size = limit; ; size = SLICE) {
    const read = await readStating(days, of, left, { size, order });
    const stated = read.map(({ _id: messageId, appId }) => {
      const { webhookId } = of;
      return { id: deliveryIdOf(messageId, webhookId), messageId, webhookId, appId };
    });
    found.push(...(await withoutRecorded(days, stated.filter(isWithin(left)))));
    examined += read.length;
    const last = read.at(-1);
    if (!last || read.length < size) return { found, examined, readTo: null };
    const readTo = endOfTime(last._id, order);
    if (found.length >= limit || examined >= MAX_EXAMINED) return { found, examined, readTo };
    const end = readTo.deliveryId;
    left = order === 'newest' ? { ...left, beforeId: end } : { ...left, fromId: end };
  }
}

const isWithin =
  ({ fromId = '', beforeId }: IdSpan) =>
  ({ id }: StatedDelivery): boolean =>
    id > fromId && (beforeId === undefined || id < beforeId);

/**
 * The next messages that state a delivery to the webhook, and all others of the last one's millisecond: in it, ids of
 * deliveries have another order than those of their messages.
 */
async function readStating(
  { messages }: Days,
  { companyId, webhookId, appId }: WebhookOf,
  wanted: IdSpan,
  { size, order }: { size: number; order: 'newest' | 'oldest' },
): Promise<StatingDocument[]> {
  const span = messages.kept(messageSpanOf(wanted), 'msg');
  const inOrder = messages.within(span);
  const find = (documents: mongo.Collection<MessageDocument>, _id: object, limit = 0) =>
    documentsIn<'messages'>(documents, companyId)
      .find({
        disabledTargets: webhookId,
        _id,
        ...(appId !== undefined && { appId }),
        ...messages.notRemoved(),
      })
      .sort({ _id: order === 'newest' ? -1 : 1 })
      .limit(limit)
      .project<StatingDocument>({ appId: 1 })
      .toArray();
  const days = order === 'newest' ? inOrder.reverse() : inOrder;
  const read = await readUpTo(days, size, (documents, left) =>
    find(documents, boundsOf(span), left),
  );
  const last = read.at(-1);
  if (!last || read.length < size) return read;
  const time = `msg_${timePartOf(last._id)}`;
  const others =
    order === 'newest' ? { $gte: time, $lt: last._id } : { $gt: last._id, $lt: `${time}~` };
  return [...read, ...(await find(messages.of(last._id), others))];
}

const RANDOM = { first: '0'.repeat(16), last: 'z'.repeat(16) };

/** Behind every delivery of the messages of this millisecond. */
function endOfTime(messageId: string, order: 'newest' | 'oldest'): DeliveryPosition {
  const end = timePartOf(messageId) + (order === 'newest' ? RANDOM.first : RANDOM.last);
  return { messageId: `msg_${end}`, deliveryId: `dlv_${end}` };
}

/**
 * The messages of deliveries have their time in their ids. A bound within a millisecond needs all of its messages, and one
 * at its end none: a page of many of one time would begin again where it began.
 */
function messageSpanOf({ fromId, beforeId }: IdSpan): IdSpan {
  const beginsBehind = fromId?.endsWith(RANDOM.last) ? '~' : '';
  const endsBehind = beforeId?.endsWith(RANDOM.first) ? '' : '~';
  return {
    fromId: fromId === undefined ? undefined : `msg_${timePartOf(fromId)}${beginsBehind}`,
    beforeId: beforeId === undefined ? undefined : `msg_${timePartOf(beforeId)}${endsBehind}`,
  };
}

function boundsOf({ fromId, beforeId }: { fromId: string; beforeId: string | undefined }) {
  return { $gte: fromId, ...(beforeId !== undefined && { $lt: beforeId }) };
}

async function countOf(
  days: Days,
  {
    companyId,
    webhookIds,
    appId,
  }: Omit<WebhookOf, 'webhookId'> & { webhookIds: readonly string[] },
  wanted: IdSpan,
  limit: number,
): Promise<number> {
  const { messages } = days;
  const span = messages.kept(messageSpanOf(wanted), 'msg');
  const stating = async function* (): AsyncGenerator<StatedDelivery> {
    for (const documents of messages.within(span)) {
      const found = documentsIn<'messages'>(documents, companyId)
        .find({
          disabledTargets: { $in: [...webhookIds] },
          _id: boundsOf(span),
          ...(appId !== undefined && { appId }),
          ...messages.notRemoved(),
        })
        // The server sends nothing else of messages that may have 10,000.
        .project<StatingDocument>({
          disabledTargets: { $setIntersection: ['$disabledTargets', [...webhookIds]] },
        });
      for await (const message of found.batchSize(SLICE)) {
        const stated = await statedBy(message, message.disabledTargets ?? []);
        yield* stated.filter(isWithin(wanted));
      }
    }
  };
  let sum = 0;
  let examined = 0;
  for await (const part of inParts(stating(), () => Math.min(MAX_IDS, limit - examined))) {
    sum += (await withoutRecorded(days, part)).length;
    examined += part.length;
    if (examined >= limit) break;
  }
  return sum;
}

async function withoutRecorded(
  { deliveries }: Days,
  stated: readonly StatedDelivery[],
): Promise<StatedDelivery[]> {
  const recorded = await recordedAmong(
    { deliveries },
    stated.map(({ id }) => id),
  );
  return stated.filter(({ id }) => !recorded.has(id));
}

async function record(
  days: Days,
  { companyId, webhookId, page }: Pick<Resend, 'companyId' | 'webhookId' | 'page'>,
): Promise<void> {
  if (webhookId === null) return;
  const recorded = await recordedAmong(days, page);
  const missing = page.filter((id) => !recorded.has(id)).sort();
  if (missing.length === 0) return;
  const stated = await statedAmong(days, { companyId, webhookId }, missing);
  if (stated.length > 0) await createDeliveryStore({ days }).insertAll(stated);
}

/** A message that a rollback removes must not get a delivery. */
const COMMITTED = { readConcern: { level: 'majority' } } as const;

/** Returns those of these deliveries, in the order of their ids, that a message states. */
async function statedAmong(
  { messages }: Days,
  { companyId, webhookId }: WebhookOf,
  ids: readonly string[],
): Promise<SettledDelivery[]> {
  const wanted = new Set(ids);
  const span = messages.kept(messageSpanOf({ fromId: ids[0], beforeId: ids.at(-1) }), 'msg');
  const stated: SettledDelivery[] = [];
  for (const documents of messages.within(span)) {
    const found = documentsIn<'messages'>(documents, companyId)
      .find({ disabledTargets: webhookId, _id: boundsOf(span) }, COMMITTED)
      .sort({ _id: 1 })
      .project<UnattemptedDocument>(UNATTEMPTED_FIELDS);
    for await (const document of found.batchSize(SLICE)) {
      if (!wanted.delete(deliveryIdOf(document._id, webhookId))) continue;
      const message = { ...document, disabledTargets: [webhookId] };
      stated.push(unattemptedOf(message, webhookId, document.createdAt.getTime()));
      if (wanted.size === 0) return stated;
    }
  }
  return stated;
}

/** The fields of a message that its deliveries have before their first attempt. */
export const UNATTEMPTED_FIELDS = {
  companyId: 1,
  appId: 1,
  createdAt: 1,
  erasesPayload: 1,
  omitsResponses: 1,
  expiresAt: 1,
  removeAt: 1,
  deliverAt: 1,
} as const;

export type UnattemptedDocument = Pick<
  MessageDocument,
  '_id' | 'disabledTargets' | keyof typeof UNATTEMPTED_FIELDS
>;

/** Returns the delivery of a target before its first attempt, as it is recorded at `atMs` (milliseconds since 1970). */
export function unattemptedOf(
  message: UnattemptedDocument,
  webhookId: string,
  atMs: number,
): SettledDelivery {
  const { _id: id, companyId, appId, createdAt, expiresAt, removeAt, deliverAt } = message;
  const disabledTargets = new Set(message.disabledTargets);
  const given = { ...notStoredOf(message), ...lifetimeIn(expiresAt, removeAt) };
  const time = deliverAt && { deliverAtMs: deliverAt.getTime() };
  const createdAtMs = createdAt.getTime();
  const of = { id, companyId, appId, createdAtMs, disabledTargets, ...given, ...time };
  return unattemptedDelivery(of, webhookId, atMs);
}
