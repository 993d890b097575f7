import { cancelReasonAtAcceptance } from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import {
  type DeliveryFilter,
  isSelected,
  statusesOf,
  storedReasonOf,
} from '@posthorn/domain/delivery/delivery-filter.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import {
  type DeliveryPage,
  type DeliveryPosition,
  mergePages,
  positionOf,
} from '@posthorn/platform/mongo/messages/delivery-pages.ts';
import {
  type DeliveryQueries,
  type ListedDelivery,
  listOrderOf,
  type UndeliveredStatus,
} from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type {
  MessageOutline,
  MessageQueries,
} from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { NextSlice } from '../limits/slices.ts';
import { outlineBefore, withCancellations } from './messages.ts';

export interface DeliveryListQuery extends DeliveryFilter {
  /** The last delivery of the page before. */
  after?: DeliveryPosition | undefined;
  limit: number;
}

/** A delivery of the list, with the event type of its message; null when that has none, and when it is not stored. */
export interface ShownDelivery extends ListedDelivery {
  eventType: string | null;
}

interface ShownPage {
  /** Deliveries of the newest message first. */
  deliveries: ShownDelivery[];
  /** Null when nothing follows. */
  next: DeliveryPosition | null;
}

export interface ListDeliveriesDeps {
  messages: Pick<MessageQueries, 'listOutlines' | 'eventTypesOf'>;
  deliveries: Pick<DeliveryQueries, 'listedOf' | 'listUndelivered'>;
  webhooks: Pick<WebhookStore, 'cancelBeforeOf' | 'isCancelling'>;
  nextSlice: NextSlice;
}

/** Deliveries per read when a filter may drop most of them. */
const CHUNK = 500;
/** A page ends when it has examined so many: a rare event type must not keep its caller waiting. */
const MAX_EXAMINED = 2_500;
/** The same while it has found nothing, about half a second: an empty page helps nobody. */
const MAX_EXAMINED_IN_VAIN = 25_000;

/**
 * Returns one page of the company's deliveries. Those that are pending, exhausted or cancelled have indexes, and are
 * listed from their first attempt on, or from the acceptance on when their message states them. Delivered ones, nearly all,
 * are in no index, and neither are the others without an attempt: a list that may have these goes along the messages and
 * looks up the deliveries of each.
 */
export function listAllDeliveries(
  deps: ListDeliveriesDeps,
  companyId: string,
  query: DeliveryListQuery,
): Promise<ShownPage> {
  const statuses = statusesOf(query);
  return statuses.includes('delivered')
    ? listByMessages(deps, companyId, query)
    : listByIndex(deps, companyId, { ...query, statuses: statuses.filter(isUndelivered) });
}

const isUndelivered = (status: DeliveryStatus): status is UndeliveredStatus =>
  status !== 'delivered';

async function listByIndex(
  deps: ListDeliveriesDeps,
  companyId: string,
  query: DeliveryListQuery & { statuses: readonly UndeliveredStatus[] },
): Promise<ShownPage> {
  const { limit } = query;
  const statuses = await statusesToRead(deps, companyId, query);
  const page = createPage(query);
  let after = query.after;
  let examined = 0;
  while (examined < (page.isEmpty() ? MAX_EXAMINED_IN_VAIN : MAX_EXAMINED)) {
    // After a page that a cancellation has emptied, a million more may follow.
    const isFull = !isFiltered(query) && statuses === query.statuses && examined === 0;
    const size = isFull ? limit + 1 : CHUNK;
    const wanted = { ...query, after, statuses };
    const { found, examined: read, readTo } = await readUndelivered(deps, companyId, wanted, size);
    await deps.nextSlice();
    if (page.add(await toShown(deps, companyId, found))) return page.cut();
    if (readTo === null) return page.end(null);
    after = readTo;
    examined += Math.max(size, read);
  }
  return page.end(after ?? null);
}

/** While cancellations are being stored, deliveries that are stored as pending may be cancelled. */
async function statusesToRead(
  { webhooks }: ListDeliveriesDeps,
  companyId: string,
  { statuses }: { statuses: readonly UndeliveredStatus[] },
): Promise<readonly UndeliveredStatus[]> {
  const mayBeLate = statuses.includes('cancelled') && !statuses.includes('pending');
  return mayBeLate && (await webhooks.isCancelling(companyId))
    ? [...statuses, 'pending']
    : statuses;
}

interface Undelivered extends Pick<
  DeliveryListQuery,
  'webhookId' | 'reason' | 'sinceMs' | 'untilMs'
> {
  statuses: readonly UndeliveredStatus[];
  after: DeliveryPosition | undefined;
}

/** Reads the next deliveries of these statuses, in the order of the list. */
async function readUndelivered(
  { deliveries }: ListDeliveriesDeps,
  companyId: string,
  { statuses, webhookId, reason, sinceMs: fromMs, untilMs, after }: Undelivered,
  size: number,
): Promise<DeliveryPage<ListedDelivery>> {
  const beforeMs = untilMs === undefined ? undefined : untilMs + 1;
  const filter = { webhookId, fromMs, beforeMs, after };
  const pages = await Promise.all(
    statuses.map((status) => {
      // A delivery that is stored as pending gets its reason when it is shown.
      const stored = status === 'pending' ? undefined : storedReasonOf({ reason });
      return deliveries.listUndelivered(companyId, { ...filter, status, reason: stored }, size);
    }),
  );
  // One that ends between two reads is in two of them.
  return mergePages(pages, listOrderOf({ webhookId }), size);
}

/** Whether a read may return deliveries that the query does not want. */
function isFiltered(query: DeliveryListQuery): boolean {
  const { waiting, reason, webhookId, appId, eventType } = query;
  // An index has the reason, but not that of one webhook.
  const ofWebhook = webhookId === undefined ? undefined : reason;
  return [waiting, ofWebhook, appId, eventType].some((each) => each !== undefined);
}

async function toShown(
  deps: ListDeliveriesDeps,
  companyId: string,
  found: readonly ListedDelivery[],
): Promise<ShownDelivery[]> {
  const ids = found.map(({ messageId }) => messageId);
  const [shown, types] = await Promise.all([
    withCancellations(deps, companyId, found),
    deps.messages.eventTypesOf(companyId, ids),
  ]);
  return shown.map((each) => ({ ...each, eventType: types.get(each.messageId) ?? null }));
}

/** Collects the deliveries that a query wants. */
function createPage(query: DeliveryListQuery) {
  const kept: ShownDelivery[] = [];
  return {
    isEmpty: () => kept.length === 0,
    /** Returns true when there are more than the page may have. */
    add(found: readonly ShownDelivery[]): boolean {
      for (const each of found) {
        if (!isSelected(query, each)) continue;
        if (kept.length === query.limit) return true;
        kept.push(each);
      }
      return false;
    },
    cut(): ShownPage {
      const last = kept.at(-1);
      return { deliveries: kept, next: last ? positionOf(last) : null };
    },
    end: (next: DeliveryPosition | null): ShownPage => ({ deliveries: kept, next }),
  };
}

/** Behind every delivery of the message. */
function endOf(messageId: string): DeliveryPosition {
  return { messageId, deliveryId: firstIdAt('dlv', timeMsOf(messageId)) + '0'.repeat(16) };
}

async function listByMessages(
  deps: ListDeliveriesDeps,
  companyId: string,
  query: DeliveryListQuery,
): Promise<ShownPage> {
  const { limit, appId, webhookId, sinceMs, untilMs } = query;
  // One index: the page checks the other one.
  const owner = webhookId === undefined ? { appId } : { webhookId };
  const fromId = sinceMs === undefined ? undefined : firstIdAt('msg', sinceMs);
  const page = createPage(query);
  const bound = (): number => (page.isEmpty() ? MAX_EXAMINED_IN_VAIN : MAX_EXAMINED);
  let beforeId = firstBound(untilMs, query.after);
  let examined = 0;
  for (;;) {
    // A filter may drop nearly all of them, and each round is several reads one after the other.
    const messages = query.eventType === undefined && examined === 0 ? limit + 1 : CHUNK;
    const bounds = { messages, targets: Math.min(MAX_EXAMINED, bound() - examined) };
    const filter = { ...owner, fromId, beforeId };
    const outlines = await deps.messages.listOutlines(companyId, filter, bounds);
    const places = await placesOf(deps, query, outlines);
    let looked = examined;
    for (const slice of slicesOf(places, CHUNK)) {
      if (page.add(await readPlaces(deps, companyId, slice))) return page.cut();
      looked += slice.length;
      if (looked >= bound()) return page.end(slice.at(-1)?.position ?? null);
    }
    const last = outlines.at(-1);
    const targets = outlines.reduce((sum, outline) => sum + outline.targets.length, 0);
    if (!last || (outlines.length < messages && targets < bounds.targets)) return page.end(null);
    // Also the targets of other event types: they are read, and decoded.
    examined += Math.max(outlines.length, targets);
    beforeId = last.id;
    if (examined >= bound()) return page.end(endOf(last.id));
  }
}

/** The last message of the page before is read again for its further deliveries, unless that page ended behind them. */
function firstBound(
  untilMs: number | undefined,
  after: DeliveryPosition | undefined,
): string | undefined {
  const end = untilMs === undefined ? undefined : firstIdAt('msg', untilMs + 1);
  const isOver = (at: DeliveryPosition): boolean =>
    at.deliveryId === endOf(at.messageId).deliveryId;
  const next = after && (isOver(after) ? after.messageId : `${after.messageId}~`);
  return next !== undefined && (end === undefined || next < end) ? next : end;
}

/** A delivery that a message has, recorded or not. */
interface Place {
  position: DeliveryPosition;
  webhookId: string;
  outline: MessageOutline;
}

/** Returns the places of the wanted messages, in the order of the list. Derives 500 ids, a millisecond, in a turn. */
async function placesOf(
  { nextSlice }: ListDeliveriesDeps,
  { after, webhookId, eventType }: DeliveryListQuery,
  outlines: readonly MessageOutline[],
): Promise<Place[]> {
  const places: Place[] = [];
  for (const outline of outlines) {
    if (eventType !== undefined && outline.eventType !== eventType) continue;
    const ofMessage: Place[] = [];
    const targets = webhookId === undefined ? outline.targets : [webhookId];
    for (const slice of slicesOf(targets, CHUNK)) {
      if (slice.length === CHUNK) await nextSlice();
      for (const id of slice) {
        const position = { messageId: outline.id, deliveryId: deliveryIdOf(outline.id, id) };
        if (isBehind(position, after)) ofMessage.push({ position, webhookId: id, outline });
      }
    }
    ofMessage.sort((a, b) => (a.position.deliveryId < b.position.deliveryId ? 1 : -1));
    places.push(...ofMessage);
  }
  return places;
}

function isBehind(position: DeliveryPosition, after: DeliveryPosition | undefined): boolean {
  return after?.messageId !== position.messageId || position.deliveryId < after.deliveryId;
}

async function readPlaces(
  deps: ListDeliveriesDeps,
  companyId: string,
  places: readonly Place[],
): Promise<ShownDelivery[]> {
  const ids = places.map(({ position }) => position.deliveryId);
  const recorded = await deps.deliveries.listedOf(companyId, ids);
  await deps.nextSlice();
  const byId = new Map(recorded.map((each) => [each.id, each]));
  const found = places.map((place) => ({
    ...(byId.get(place.position.deliveryId) ?? listedBefore(place)),
    eventType: place.outline.eventType,
  }));
  return withCancellations(deps, companyId, found);
}

/** Returns a delivery as it is while it has no document. */
function listedBefore({ outline, webhookId }: Place): ListedDelivery {
  const before = outlineBefore(outline, webhookId);
  const nextAttemptAtMs = outline.deliverAtMs ?? timeMsOf(outline.id);
  return {
    ...before,
    messageId: outline.id,
    appId: outline.appId,
    reason: cancelReasonAtAcceptance(outline, webhookId),
    nextAttemptAtMs: before.status === 'pending' ? nextAttemptAtMs : null,
    waiting: null,
    waitingSinceMs: null,
    lastOutcome: null,
  };
}
