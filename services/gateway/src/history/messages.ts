import {
  CANCELLED_BY_CLIENT,
  isCancelledBefore,
  statusBeforeAttempts,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import {
  type Delivery,
  type DeliveryStatus,
  type MessageStatus,
  messageStatus,
} from '@posthorn/domain/delivery/delivery.ts';
import { charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
  FailureFilter,
} from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type {
  MessageOutline,
  MessageQueries,
  OutlineBounds,
} from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { FoundWebhook, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { notFound } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';

export interface MessageQuery extends DeliveryFilter {
  appId?: string | undefined;
  eventType?: string | undefined;
  tag?: string | undefined;
  externalId?: string | undefined;
  status?: MessageStatus | undefined;
  /** Creation of the message, in milliseconds since 1970, both inclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** Id of the last message of the page before. */
  cursor?: string | undefined;
  limit: number;
}

interface ListedMessages {
  /** Newest first. */
  messages: { message: Message; deliveries: DeliveryOutline[] }[];
  nextCursor: string | null;
}

/** The stores behind messages that are read. */
export interface ListDeps extends OutlineDeps {
  messages: Pick<MessageQueries, 'listOutlines' | 'outlinesOf' | 'findMany'>;
  deliveries: Pick<DeliveryQueries, 'outlinesOf' | 'messagesOfFailed'>;
  webhooks: Pick<WebhookStore, 'cancelBeforeOf' | 'isCancelling'>;
}

/** Messages per read when a filter by status or event type may drop most of them. */
const CHUNK = 500;
/** A page reads at most this many deliveries and ends there: messages to many webhooks must not cost unbounded work. */
const MAX_READ = 10_000;
/**
 * The same for a filter by status or event type, in deliveries, or messages where those have none: a rare status must
 * not keep its caller waiting. Reading 10,000 took 0.4 to 1.0 s, with 400,000 deliveries in the store.
 */
const MAX_SEARCHED = 2_500;

/**
 * Returns one page of messages. The status of a message follows from its deliveries and is not stored, and its event
 * type has no index, which every message would pay for. So these filters read candidates and keep those that match.
 */
export async function listMessages(
  deps: ListDeps,
  companyId: string,
  query: MessageQuery,
): Promise<ListedMessages> {
  const { limit, status } = query;
  const isSearch = isSearchOf(query);
  const maxScanned = isSearch ? MAX_SEARCHED : MAX_READ;
  const kept: Candidate[] = [];
  let beforeId = upperBound(query);
  let scanned = 0;
  for (;;) {
    const messages = isSearch ? CHUNK : limit + 1;
    const bounds = { messages, targets: maxScanned - scanned };
    const candidates = await candidatesBefore(deps, companyId, query, beforeId, bounds);
    for (const candidate of candidates.page) {
      if (kept.length === limit) return toPage(deps, companyId, kept, kept.at(-1)?.outline.id);
      if (status === undefined || statusOf(candidate) === status) kept.push(candidate);
    }
    scanned += Math.max(messages, candidates.targets);
    beforeId = candidates.lastId ?? beforeId;
    if (candidates.isEnd) return toPage(deps, companyId, kept, undefined);
    if (scanned >= maxScanned) return toPage(deps, companyId, kept, beforeId);
  }
}

/** True for a query that may read many messages for each that it wants. */
function isSearchOf(query: MessageQuery): boolean {
  const { status, eventType, deliveryStatus, appId, webhookId, tag, externalId } = query;
  const others = [status, eventType, deliveryStatus].filter((each) => each !== undefined);
  const owners = [appId ?? webhookId, tag, externalId].filter((each) => each !== undefined);
  return others.length > 0 || owners.length > 1;
}

/** Returns the id before which the page starts, exclusive. Undefined when it starts with the newest. */
function upperBound({ toMs, cursor }: MessageQuery): string | undefined {
  const end = toMs === undefined ? undefined : firstIdAt('msg', toMs + 1);
  if (end === undefined || cursor === undefined) return end ?? cursor;
  return cursor < end ? cursor : end;
}

interface Candidates {
  page: Candidate[];
  lastId: string | undefined;
  /** Number of targets of all messages that were read. */
  targets: number;
  isEnd: boolean;
}

/**
 * Failures are few and have an index. Every other status is searched for among all messages, or among those with the
 * external id, which are fewer still.
 */
async function candidatesBefore(
  deps: ListDeps,
  companyId: string,
  query: MessageQuery,
  beforeId: string | undefined,
  bounds: OutlineBounds,
): Promise<Candidates> {
  const { appId, webhookId, tag, externalId, fromMs } = query;
  const fromId = fromMs === undefined ? undefined : firstIdAt('msg', fromMs);
  const status = failureOf(query);
  // The index has a delivery that a client has cancelled once that is stored.
  const isLate = status === 'cancelled' && (await deps.webhooks.isCancelling(companyId));
  if (status === undefined || isLate) {
    const filter = { ...indexedOf({ appId, webhookId, tag, externalId }), fromId, beforeId };
    const outlines = await deps.messages.listOutlines(companyId, filter, bounds);
    const isAll = outlines.length < bounds.messages;
    const page = await wantedOf(deps, companyId, query, outlines);
    return { page, ...endOf(outlines, bounds, outlines.at(-1)?.id, isAll) };
  }
  const failures = { status, fromId, beforeId };
  const ids = await deps.deliveries.messagesOfFailed(companyId, failures, bounds.messages);
  const outlines = await deps.messages.outlinesOf(companyId, [...new Set(ids)], bounds.targets);
  const page = await wantedOf(deps, companyId, query, outlines);
  return { page, ...endOf(outlines, bounds, ids.at(-1), ids.length < bounds.messages) };
}

type OwnerFilter = Pick<MessageQuery, 'appId' | 'webhookId' | 'tag' | 'externalId'>;

/** Each read goes along one index, that of the rarest, so that what it reads is bounded: `isWanted` checks the others. */
function indexedOf({ appId, webhookId, tag, externalId }: OwnerFilter): OwnerFilter {
  if (externalId !== undefined) return { externalId };
  return tag === undefined ? { appId, webhookId } : { tag };
}

/** Returns the status that a delivery of each message must have, when the index of failures contains that status. */
function failureOf(query: MessageQuery): FailureFilter['status'] | undefined {
  const { webhookId, deliveryStatus, status, externalId } = query;
  if (externalId !== undefined) return undefined;
  const ofDelivery = webhookId === undefined ? undefined : deliveryStatus;
  return [ofDelivery, status].find((each) => each === 'exhausted' || each === 'cancelled');
}

async function wantedOf(
  deps: ListDeps,
  companyId: string,
  query: MessageQuery,
  outlines: readonly MessageOutline[],
): Promise<Candidate[]> {
  const wanted = outlines.filter(isWanted(query));
  return withDeliveries(deps, companyId, await withDeliveryStatus(deps, companyId, query, wanted));
}

/**
 * Filters messages by event type, which no index contains, and by app, webhook and tag, which that of failures does not
 * contain. It cannot filter deliveries by webhook: a message to this webhook may have its status from another one.
 */
function isWanted({
  appId,
  webhookId,
  eventType,
  tag,
}: MessageQuery): (outline: MessageOutline) => boolean {
  return (outline) =>
    (eventType === undefined || outline.eventType === eventType) &&
    (appId === undefined || outline.appId === appId) &&
    (webhookId === undefined || outline.targets.includes(webhookId)) &&
    (tag === undefined || outline.tags?.includes(tag) === true);
}

/** Where the next read begins. Messages that the bound of targets has cut off were not read. */
function endOf(
  read: readonly MessageOutline[],
  bounds: OutlineBounds,
  lastId: string | undefined,
  isAll: boolean,
): Omit<Candidates, 'page'> {
  const targets = read.reduce((sum, outline) => sum + outline.targets.length, 0);
  if (targets < bounds.targets) return { targets, lastId, isEnd: isAll };
  return { targets, lastId: read.at(-1)?.id, isEnd: false };
}

/** A page ends with the message whose texts bring its length to this: four of the longest. */
const MAX_PAGE_CHARS = 1_048_576;

async function toPage(
  { messages, nextSlice }: ListDeps,
  companyId: string,
  kept: readonly Candidate[],
  nextCursor: string | undefined,
): Promise<ListedMessages> {
  const ids = kept.map(({ outline }) => outline.id);
  const read = await messages.findMany(companyId, ids, MAX_PAGE_CHARS);
  // For the response: as much text again.
  await nextSlice();
  const byId = new Map(read.map((each) => [each.id, each]));
  const page = kept.flatMap(({ outline, deliveries }) => {
    const message = byId.get(outline.id);
    return message ? [{ message, deliveries }] : [];
  });
  return { messages: page, nextCursor: cutAt(read, ids) ?? nextCursor ?? null };
}

/** Returns the id of the last message of a page that its payloads have ended; undefined otherwise. */
function cutAt(read: readonly Message[], wantedIds: readonly string[]): string | undefined {
  const chars = read.reduce((sum, message) => sum + charsOfMessage(message), 0);
  const lastId = read.at(-1)?.id;
  return chars >= MAX_PAGE_CHARS && lastId !== wantedIds.at(-1) ? lastId : undefined;
}

interface OutlineDeps extends CancellationDeps {
  deliveries: Pick<DeliveryQueries, 'outlinesOf'>;
  nextSlice: NextSlice;
}

export interface CancellationDeps {
  webhooks: Pick<WebhookStore, 'cancelBeforeOf'>;
}

/**
 * Returns pending deliveries as cancelled that a client has cancelled: one write at their webhook decides, and the retry
 * service stores it in each delivery later.
 */
export async function withCancellations<Shown extends Cancellable>(
  { webhooks }: CancellationDeps,
  companyId: string,
  deliveries: readonly Shown[],
): Promise<Shown[]> {
  const pending = deliveries.filter(({ status }) => status === 'pending');
  if (pending.length === 0) return [...deliveries];
  const ids = [...new Set(pending.map(({ webhookId }) => webhookId))];
  const cancelBefore = await webhooks.cancelBeforeOf(companyId, ids);
  return deliveries.map((delivery) => {
    const { status, webhookId, createdAtMs } = delivery;
    const isCancelled = isCancelledBefore(cancelBefore.get(webhookId) ?? null, createdAtMs);
    return status === 'pending' && isCancelled ? { ...delivery, ...CANCELLED } : delivery;
  });
}

type Cancellable = Pick<DeliveryOutline, 'status' | 'webhookId' | 'createdAtMs'>;

const CANCELLED = {
  status: 'cancelled',
  reason: CANCELLED_BY_CLIENT,
  nextAttemptAtMs: null,
  waiting: null,
  waitingSinceMs: null,
} as const;

/** A message that may match, with all its deliveries in the order of its targets, recorded or not. */
interface Candidate {
  outline: MessageOutline;
  deliveries: DeliveryOutline[];
}

interface DeliveryFilter {
  webhookId?: string | undefined;
  /** Of the delivery to `webhookId`, without which it has no effect. */
  deliveryStatus?: DeliveryStatus | undefined;
}

/** Keeps the messages whose delivery to the webhook has the status. Reads no deliveries to other webhooks. */
async function withDeliveryStatus(
  deps: OutlineDeps,
  companyId: string,
  { webhookId, deliveryStatus }: DeliveryFilter,
  outlines: readonly MessageOutline[],
): Promise<readonly MessageOutline[]> {
  if (webhookId === undefined || deliveryStatus === undefined) return outlines;
  const planned = outlines.map((outline) => outlineBefore(outline, webhookId));
  const found = await withRecorded(deps, companyId, planned);
  return outlines.filter(
    (_, index) => requiredAt(found, index, 'delivery').status === deliveryStatus,
  );
}

/** To read the deliveries to so many targets takes 3 ms of CPU time. */
const TARGETS_PER_TURN = 1_000;

async function withDeliveries(
  deps: OutlineDeps,
  companyId: string,
  outlines: readonly MessageOutline[],
): Promise<Candidate[]> {
  const candidates: Candidate[] = outlines.map((outline) => ({ outline, deliveries: [] }));
  const targets = candidates.flatMap((candidate) =>
    candidate.outline.targets.map((webhookId) => ({ candidate, webhookId })),
  );
  for (const slice of slicesOf(targets, TARGETS_PER_TURN)) {
    await deps.nextSlice();
    await addDeliveries(deps, companyId, slice);
  }
  return candidates;
}

/** Each id is derived once: the response needs it too. */
async function addDeliveries(
  deps: OutlineDeps,
  companyId: string,
  targets: readonly { candidate: Candidate; webhookId: string }[],
): Promise<void> {
  const planned = targets.map(({ candidate, webhookId }) => ({
    candidate,
    delivery: outlineBefore(candidate.outline, webhookId),
  }));
  const before = planned.map(({ delivery }) => delivery);
  const found = await withRecorded(deps, companyId, before);
  for (const [index, { candidate }] of planned.entries()) {
    candidate.deliveries.push(requiredAt(found, index, 'delivery'));
  }
}

/** Returns the deliveries as they are now: recorded, or as they are before that. */
async function withRecorded(
  deps: OutlineDeps,
  companyId: string,
  planned: readonly DeliveryOutline[],
): Promise<DeliveryOutline[]> {
  const ids = planned.map(({ id }) => id);
  const recorded = await deps.deliveries.outlinesOf(companyId, ids);
  const byId = new Map(recorded.map((each) => [each.id, each]));
  const found = planned.map((each) => byId.get(each.id) ?? each);
  return withCancellations(deps, companyId, found);
}

/** Returns a delivery as it is while it has no document. */
export function outlineBefore(
  message: Pick<MessageOutline, 'id' | 'disabledTargets'>,
  webhookId: string,
): DeliveryOutline {
  return {
    id: deliveryIdOf(message.id, webhookId),
    webhookId,
    status: statusBeforeAttempts(message, webhookId),
    attemptCount: 0,
    createdAtMs: timeMsOf(message.id),
    updatedAtMs: timeMsOf(message.id),
  };
}

function statusOf({ deliveries }: Candidate): MessageStatus {
  return messageStatus(deliveries.map(({ status }) => status));
}

interface ReadMessageDeps extends OutlineDeps {
  messages: Pick<MessageQueries, 'findOne'>;
  deliveries: Pick<DeliveryQueries, 'findMany' | 'outlinesOf'>;
  webhooks: Pick<WebhookStore, 'findTarget' | 'cancelBeforeOf'>;
}

/** The oldest webhook of a message and its delivery. */
export interface OldestTarget {
  /** Null when it was deleted, or when the message has no target. */
  webhook: FoundWebhook | null;
  /** Undefined while no attempt is recorded. */
  delivery: Delivery | undefined;
}

interface ReadMessage {
  message: Message;
  oldest: OldestTarget;
  /** All of them, in the order of its targets. */
  deliveries: DeliveryOutline[];
}

const NO_TARGET: OldestTarget = { webhook: null, delivery: undefined };

/** Throws ApiError 404 for an unknown message. */
export async function readMessage(
  deps: ReadMessageDeps,
  companyId: string,
  messageId: string,
): Promise<ReadMessage> {
  const message = await requireMessage(deps, companyId, messageId);
  const [oldestId, ...otherIds] = message.targets;
  if (oldestId === undefined) return { message, oldest: NO_TARGET, deliveries: [] };
  const [[delivery], [others], webhook] = await Promise.all([
    deps.deliveries.findMany(companyId, [deliveryIdOf(messageId, oldestId)]),
    withDeliveries(deps, companyId, [{ ...message, targets: otherIds }]),
    deps.webhooks.findTarget(companyId, oldestId),
  ]);
  const first = [delivery ?? outlineBefore(message, oldestId)];
  const shown = await withCancellations(deps, companyId, first);
  const deliveries = [...shown, ...(others?.deliveries ?? [])];
  return { message, oldest: { webhook, delivery }, deliveries };
}

/** Throws ApiError 404 for an unknown message. */
export async function requireMessage(
  { messages }: Pick<ReadMessageDeps, 'messages'>,
  companyId: string,
  messageId: string,
): Promise<Message> {
  const found = await messages.findOne(companyId, messageId);
  if (!found) throw notFound('message');
  return found;
}
