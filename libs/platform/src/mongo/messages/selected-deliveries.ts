import type { DeliveryFilter } from '@posthorn/domain/delivery/delivery-filter.ts';
import { isSelected, storedReasonOf } from '@posthorn/domain/delivery/delivery-filter.ts';
import { settleCancelled, type SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { forAttempts } from '@posthorn/domain/message.ts';
import { setImmediate as pause } from 'node:timers/promises';
import { slicesOf } from '../../async/fair-queue.ts';
import { documentsIn } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { MessageDocument } from '../documents.ts';
import { cancelUpdate, recordedAmong } from './deliveries.ts';
import type { DeliveryPosition } from './delivery-pages.ts';
import {
  createDeliveryQueries,
  type DeliveryQueries,
  type ListedDelivery,
  type UndeliveredStatus,
} from './delivery-queries.ts';
import { createMessageQueries, type MessageQueries } from './message-queries.ts';
import { disabledSetOf } from './messages.ts';
import {
  UNATTEMPTED_FIELDS,
  type UnattemptedDocument,
  unattemptedOf,
} from './stated-deliveries.ts';

/** The deliveries of a company that a filter selects, without its statuses, and that were created before a time. */
export interface Selection {
  companyId: string;
  filter: DeliveryFilter;
  /** Milliseconds since 1970, exclusive. */
  beforeMs: number;
}

/** Where a page begins, and how much it reads at most. */
export interface SelectionStep {
  /** `before` of the page before; undefined for the first page. */
  before: string | undefined;
  /** Deliveries, or messages. */
  limit: number;
}

export interface SelectedPage<Found> {
  found: Found[];
  /** How many were read for it. */
  examined: number;
  /** Where the next page begins; null when none is left. */
  before: string | null;
}

/**
 * Reads the selected deliveries page by page, newest first, along an index and within bounds, however few of them are
 * selected. The plan of a cancellation or a resend counts them, and the work on a cancellation cancels them.
 */
export interface SelectedDeliveries {
  /** Those that have a document, and with the status `cancelled` those that their message states. */
  recorded: (
    selection: Selection,
    status: UndeliveredStatus,
    step: SelectionStep,
  ) => Promise<SelectedPage<ListedDelivery>>;
  /**
   * Those without a document that are to be attempted, as they are before that, of messages from `sinceMs` on, before which
   * the sweep has recorded every one.
   */
  unrecorded: (
    selection: Selection,
    step: SelectionStep & { sinceMs: number; atMs: number },
  ) => Promise<SelectedPage<SettledDelivery>>;
  /** Cancels those that are pending. Returns how many. */
  cancel: (companyId: string, ids: readonly string[], atMs: number) => Promise<number>;
  /** How many of them are stored as cancelled by a client. */
  countCancelled: (companyId: string, ids: readonly string[]) => Promise<number>;
}

export function createSelectedDeliveries(db: Database): SelectedDeliveries {
  const { deliveries } = db.days;
  const queries = createDeliveryQueries(db);
  const messages = createMessageQueries(db);
  return {
    recorded: (selection, status, step) =>
      readRecorded({ queries, messages }, selection, status, step),
    unrecorded: (selection, step) => readUnrecorded(db, selection, step),
    async cancel(companyId, ids, atMs) {
      const changed = await writeByDays(deliveries, ids, itself, (documents, ofDay) =>
        documentsIn<'deliveries'>(documents, companyId).updateMany(
          { _id: { $in: [...ofDay] }, status: 'pending' },
          cancelUpdate(CANCELLED_BY_CLIENT, atMs),
        ),
      );
      return changed.reduce((sum, each) => sum + each, 0);
    },
    async countCancelled(companyId, ids) {
      const cancelled = { status: 'cancelled', reason: CANCELLED_BY_CLIENT } as const;
      const counts = await readByIds(deliveries, ids, async (documents, ofDay) => [
        await documentsIn<'deliveries'>(documents, companyId).count({
          _id: { $in: ofDay },
          ...cancelled,
        }),
      ]);
      return counts.reduce((sum, each) => sum + each, 0);
    },
  };
}

const itself = (id: string): string => id;

async function readRecorded(
  {
    queries,
    messages,
  }: {
    queries: Pick<DeliveryQueries, 'listUndelivered'>;
    messages: Pick<MessageQueries, 'eventTypesOf'>;
  },
  { companyId, filter, beforeMs }: Selection,
  status: UndeliveredStatus,
  { before, limit }: SelectionStep,
): Promise<SelectedPage<ListedDelivery>> {
  const wanted = {
    status,
    // What is stored as pending has no reason.
    reason: status === 'pending' ? undefined : storedReasonOf(filter),
    webhookId: filter.webhookId,
    fromMs: filter.sinceMs,
    beforeMs: endOf(filter, beforeMs),
    after: positionOf(before),
  };
  const page = await queries.listUndelivered(companyId, wanted, limit);
  const ids = page.found.map(({ messageId }) => messageId);
  const types = filter.eventType === undefined ? null : messages.eventTypesOf(companyId, ids);
  const typeOf = await types;
  const found = page.found.filter((each) => {
    const eventType = typeOf?.get(each.messageId) ?? null;
    // A replay creates deliveries of old messages, which may be later than the selection.
    return each.createdAtMs < beforeMs && isSelected(filter, { ...each, eventType });
  });
  return { found, examined: page.examined, before: page.readTo && textOf(page.readTo) };
}

/** Of the messages: exclusive. */
function endOf({ untilMs = Infinity }: DeliveryFilter, beforeMs: number): number {
  return Math.min(beforeMs, untilMs + 1);
}

const textOf = ({ messageId, deliveryId }: DeliveryPosition): string =>
  `${messageId}.${deliveryId}`;

function positionOf(text: string | undefined): DeliveryPosition | undefined {
  if (text === undefined) return undefined;
  const [messageId = '', deliveryId = ''] = text.split('.');
  return { messageId, deliveryId };
}

/** A page ends with the message that reaches it: to derive the ids of so many takes 4 ms of CPU time. */
const MAX_TARGETS = 2_000;
/** To derive the ids of so many takes a millisecond. */
const SLICE = 500;
/** The server's first batch: a message may have 10,000 targets. */
const BATCH = 101;

type UnrecordedDocument = UnattemptedDocument &
  Pick<MessageDocument, 'eventType'> & { targets?: string[] };

async function readUnrecorded(
  db: Database,
  selection: Selection,
  step: SelectionStep & { sinceMs: number; atMs: number },
): Promise<SelectedPage<SettledDelivery>> {
  const { filter } = selection;
  const { read, before } = await readMessages(db, selection, step);
  const wanted = read.filter(
    (each) =>
      (filter.eventType === undefined || each.eventType === filter.eventType) &&
      (filter.appId === undefined || each.appId === filter.appId),
  );
  const found: SettledDelivery[] = [];
  const places = wanted.flatMap((message) =>
    targetsOf(message, filter).map((webhookId) => ({ message, webhookId })),
  );
  for (const slice of slicesOf(places, SLICE)) {
    if (slice.length === SLICE) await pause();
    const { atMs } = step;
    found.push(...slice.map(({ message, webhookId }) => unattemptedOf(message, webhookId, atMs)));
  }
  const recorded = await recordedAmong(
    db.days,
    found.map(({ id }) => id),
  );
  const examined = Math.max(read.length, places.length);
  return { found: found.filter(({ id }) => !recorded.has(id)), examined, before };
}

/** What the message states has ended. */
function targetsOf(
  { targets = [], disabledTargets }: UnrecordedDocument,
  { webhookId }: DeliveryFilter,
): string[] {
  const stated = disabledSetOf(disabledTargets);
  return forAttempts({
    targets: webhookId === undefined ? targets : [webhookId],
    disabledTargets: stated,
  }).targets;
}

/** The next messages, newest first, without those that a replay has added to: their deliveries are recorded. */
async function readMessages(
  { days: { messages } }: Database,
  { companyId, filter, beforeMs }: Selection,
  { before, limit, sinceMs }: SelectionStep & { sinceMs: number },
): Promise<{ read: UnrecordedDocument[]; before: string | null }> {
  const { webhookId, appId } = filter;
  const fromMs = Math.max(sinceMs, filter.sinceMs ?? 0);
  const beforeId = before ?? firstIdAt('msg', endOf(filter, beforeMs));
  const span = messages.kept({ fromId: firstIdAt('msg', fromMs), beforeId }, 'msg');
  const ofApp = appId === undefined ? {} : { appId };
  const owner = webhookId === undefined ? ofApp : { targets: webhookId };
  const disabled = { $ifNull: ['$disabledTargets', []] };
  const targets =
    webhookId === undefined
      ? { targets: 1, disabledTargets: 1 }
      : { disabledTargets: { $setIntersection: [disabled, [webhookId]] } };
  const read: UnrecordedDocument[] = [];
  let sum = 0;
  for (const documents of messages.within(span).reverse()) {
    const found = documentsIn<'messages'>(documents, companyId)
      .find({ ...owner, _id: { $gte: span.fromId, $lt: beforeId } })
      .sort({ _id: -1 })
      .limit(limit - read.length)
      .project<UnrecordedDocument>({ ...UNATTEMPTED_FIELDS, eventType: 1, ...targets });
    for await (const document of found.batchSize(BATCH)) {
      read.push(document);
      sum += document.targets?.length ?? 1;
      if (read.length >= limit || sum >= MAX_TARGETS) return { read, before: document._id };
    }
  }
  return { read, before: null };
}

/** A delivery without a document as it is stored for a client that cancels it. */
export function cancelledByClient(delivery: SettledDelivery, atMs: number): SettledDelivery {
  return settleCancelled({ ...delivery, deliveryId: delivery.id }, CANCELLED_BY_CLIENT, atMs);
}
