import type { DeliveryFilter } from '@posthorn/domain/delivery/delivery-filter.ts';
import { isSelected, storedReasonOf } from '@posthorn/domain/delivery/delivery-filter.ts';
import {
  settleCancelled,
  type SettledDelivery,
  unattemptedDelivery,
} from '@posthorn/domain/delivery/settlement.ts';
import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { notStoredOf } from '@posthorn/domain/message.ts';
import { setImmediate as pause } from 'node:timers/promises';
import { slicesOf } from '../../async/fair-queue.ts';
import { documentsIn } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { MessageDocument } from '../documents.ts';
import { cancelUpdate } from './deliveries.ts';
import {
  createDeliveryQueries,
  type DeliveryPosition,
  type ListedDelivery,
  type UndeliveredStatus,
} from './delivery-queries.ts';
import { createMessageQueries } from './message-queries.ts';
import { lifetimeIn } from './messages.ts';

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
  /** Those that have a document. */
  recorded: (
    selection: Selection,
    status: UndeliveredStatus,
    step: SelectionStep,
  ) => Promise<SelectedPage<ListedDelivery>>;
  /**
   * Those without a document, as they are before their first attempt, of messages from `sinceMs` on, before which the
   * sweep has recorded every delivery.
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
    async recorded({ companyId, filter, beforeMs }, status, { before, limit }) {
      const read = await queries.listUndelivered(
        companyId,
        {
          status,
          // What is stored as pending has no reason.
          reason: status === 'pending' ? undefined : storedReasonOf(filter),
          webhookId: filter.webhookId,
          fromMs: filter.sinceMs,
          beforeMs: endOf(filter, beforeMs),
          after: positionOf(before),
        },
        limit,
      );
      const ids = read.map(({ messageId }) => messageId);
      const types = filter.eventType === undefined ? null : messages.eventTypesOf(companyId, ids);
      const typeOf = await types;
      const found = read.filter((each) => {
        const eventType = typeOf?.get(each.messageId) ?? null;
        // A replay creates deliveries of old messages, which may be later than the selection.
        return each.createdAtMs < beforeMs && isSelected(filter, { ...each, eventType });
      });
      const last = read.length < limit ? undefined : read.at(-1);
      return { found, examined: read.length, before: last ? textOf(last) : null };
    },
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

/** Of the messages: exclusive. */
function endOf({ untilMs = Infinity }: DeliveryFilter, beforeMs: number): number {
  return Math.min(beforeMs, untilMs + 1);
}

const textOf = ({ messageId, id }: ListedDelivery): string => `${messageId}.${id}`;

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

const FIELDS = {
  companyId: 1,
  appId: 1,
  eventType: 1,
  createdAt: 1,
  erasesPayload: 1,
  omitsResponses: 1,
  expiresAt: 1,
  removeAt: 1,
  deliverAt: 1,
} as const;

type UnrecordedDocument = Omit<
  MessageDocument,
  'targets' | 'disabledTargets' | 'addedTargets' | 'payload'
> & { targets?: string[]; disabledTargets?: string[] };

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
    found.push(...slice.map((place) => unattemptedOf(place, step.atMs)));
  }
  const recorded = await recordedOf(
    db,
    found.map(({ id }) => id),
  );
  const examined = Math.max(read.length, places.length);
  return { found: found.filter(({ id }) => !recorded.has(id)), examined, before };
}

function targetsOf({ targets = [] }: UnrecordedDocument, { webhookId }: DeliveryFilter): string[] {
  return webhookId === undefined ? targets : [webhookId];
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
      .project<UnrecordedDocument>({ ...FIELDS, ...targets });
    for await (const document of found.batchSize(BATCH)) {
      read.push(document);
      sum += document.targets?.length ?? 1;
      if (read.length >= limit || sum >= MAX_TARGETS) return { read, before: document._id };
    }
  }
  return { read, before: null };
}

interface Place {
  message: UnrecordedDocument;
  webhookId: string;
}

/** Of a webhook that was disabled when the message was accepted, the delivery was cancelled before. */
function unattemptedOf({ message, webhookId }: Place, atMs: number): SettledDelivery {
  const { _id: id, companyId, appId, createdAt, expiresAt, removeAt, deliverAt } = message;
  const disabledTargets = new Set(message.disabledTargets);
  const given = { ...notStoredOf(message), ...lifetimeIn(expiresAt, removeAt) };
  const time = deliverAt && { deliverAtMs: deliverAt.getTime() };
  const createdAtMs = createdAt.getTime();
  const of = { id, companyId, appId, createdAtMs, disabledTargets, ...given, ...time };
  return unattemptedDelivery(of, webhookId, atMs);
}

async function recordedOf({ days: { deliveries } }: Database, ids: string[]): Promise<Set<string>> {
  const recorded = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  return new Set(recorded.map(({ _id }) => _id));
}

/** A delivery without a document as it is stored for a client that cancels it. One that has ended is stored as it is. */
export function cancelledByClient(delivery: SettledDelivery, atMs: number): SettledDelivery {
  if (delivery.status !== 'pending') return delivery;
  return settleCancelled({ ...delivery, deliveryId: delivery.id }, CANCELLED_BY_CLIENT, atMs);
}
