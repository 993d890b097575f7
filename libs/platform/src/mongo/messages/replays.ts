import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { factsOf, type Filter, matches } from '@posthorn/domain/filter.ts';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import { type IdentifiedRef, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { notStoredOf, orderOf } from '@posthorn/domain/message.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { documentsIn } from '../company-documents.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import type { MessageDocument } from '../documents.ts';
import { readInParts } from '../read-in-parts.ts';
import { lifetimeIn } from './messages.ts';
import { createDeliveryStore } from './deliveries.ts';

/** The messages to an app in a span of ids, both ends exclusive. */
export interface ReplaySpan {
  companyId: string;
  appId: string;
  webhookId: string;
  afterId: string;
  beforeId: string;
}

/** Returns the span of a replay. Throws ImpossibleError for a webhook of no app, to which no message of an app goes. */
export function replaySpanOf(
  { appId }: Pick<Webhook, 'appId'>,
  replay: Pick<Resend, 'companyId' | 'webhookId' | 'afterId' | 'beforeId'>,
): ReplaySpan {
  const { companyId, webhookId, afterId, beforeId } = replay;
  if (appId === null || webhookId === null) {
    throw new ImpossibleError('a replay is to a webhook of an app');
  }
  return { companyId, appId, webhookId, afterId, beforeId };
}

/** Whether the webhook receives messages of this event type now. */
type WantsEvent = (eventType: string | null) => boolean;

interface MissingPage {
  /** The messages that the webhook is not among the targets of and would receive now, oldest first. */
  ids: string[];
  /** How many of these have no payload any more. */
  erased: number;
  /** The last message that was examined; null at the end of the span. */
  readTo: string | null;
}

/** The deliveries to add, by the ids of their messages. Times are in milliseconds since 1970. */
interface Added {
  companyId: string;
  webhookId: string;
  messageIds: readonly string[];
  /** When the replay began: all of its deliveries are created then. */
  createdAtMs: number;
  atMs: number;
}

/** Gives messages of an app to a webhook that was not among their targets. */
export interface ReplayStore {
  /** Examines at most `limit` messages. */
  findMissing: (span: ReplaySpan, wants: WantsEvent, limit: number) => Promise<MissingPage>;
  /**
   * Returns those of these messages that pass the filter, in their order. A message whose payload was erased counts as
   * passing: it is skipped when it is added.
   */
  findPassing: (companyId: string, ids: readonly string[], filter: Filter) => Promise<string[]>;
  /**
   * Adds the webhook to the messages whose payload is stored, and records a pending delivery of each that has none.
   * Returns the deliveries, also those that an earlier call has added, so it may be repeated.
   */
  add: (added: Added) => Promise<IdentifiedRef[]>;
  /** The deliveries among these that are pending, have no attempt, and wait neither for their time nor for their order. */
  unattempted: (deliveryIds: readonly string[]) => Promise<string[]>;
}

export function createReplayStore(db: Database): ReplayStore {
  const { messages, deliveries } = db.days;
  const store = createDeliveryStore(db);
  return {
    findMissing: (span, wants, limit) => findMissing(messages, span, wants, limit),
    findPassing: (companyId, ids, filter) => findPassing(messages, { companyId, ids, filter }),
    async add({ createdAtMs, atMs, ...added }) {
      await addTarget(messages, added);
      const { companyId, webhookId } = added;
      const found = await readAdded(messages, added);
      const settled = found.map(({ _id: id, appId, ...document }) => {
        const { deliverAt, expiresAt, removeAt } = document;
        const of = { id, companyId, appId, createdAtMs, disabledTargets: new Set<string>() };
        const times = {
          ...lifetimeIn(expiresAt, removeAt),
          ...(deliverAt && { deliverAtMs: deliverAt.getTime() }),
        };
        const given = { ...of, ...notStoredOf(document), ...times };
        // Whether the webhook has `ordering` is decided where the record arrives.
        const delivery = { ...unattemptedDelivery(given, webhookId, atMs), ...orderOf(document) };
        // Not since the replay began, or the sweep would find it overdue.
        return delivery.wait ? delivery : { ...delivery, nextAttemptAtMs: atMs };
      });
      if (settled.length > 0) await store.insertAll(settled);
      return settled.map((each) => ({ ...refOf(each), deliveryId: each.id }));
    },
    async unattempted(ids) {
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documents
          .find({ _id: { $in: ofDay }, ...UNATTEMPTED }, { readConcern: { level: 'majority' } })
          .project<{ _id: string }>({ _id: 1 })
          .toArray(),
      );
      const wanted = new Set(found.map(({ _id }) => _id));
      return ids.filter((id) => wanted.has(id));
    },
  };
}

/** A delivery that waits for its order goes on when that has come: a key that is blocked keeps no replay. */
const UNATTEMPTED = {
  status: 'pending',
  attemptCount: 0,
  waiting: { $nin: ['time', 'order'] },
} as const;

/**
 * A day is dropped with its messages, and the attempts of a delivery may take 17.6 h. Messages that are dropped before
 * their last attempt are no longer replayed.
 */
const KEPT_FOR_MS = DAY_MS;

interface ExaminedDocument {
  _id: string;
  eventType?: string;
  isPayloadErased?: boolean;
  isTarget: boolean;
  isAdded: boolean;
}

async function findMissing(
  messages: Days['messages'],
  { companyId, appId, webhookId, afterId, beforeId }: ReplaySpan,
  wants: WantsEvent,
  limit: number,
): Promise<MissingPage> {
  const { fromId } = messages.kept({ fromId: afterId }, 'msg', KEPT_FOR_MS);
  const _id = { $gt: fromId, $lt: beforeId };
  const days = messages.within({ fromId, beforeId });
  const found = await readUpTo(days, limit, (documents, left) =>
    documentsIn<'messages'>(documents, companyId)
      .find({ appId, _id })
      .sort({ _id: 1 })
      .limit(left)
      // A message may have 10,000 targets.
      .project<ExaminedDocument>({
        eventType: 1,
        isPayloadErased: 1,
        isTarget: { $in: [webhookId, '$targets'] },
        isAdded: { $in: [webhookId, { $ifNull: ['$addedTargets', []] }] },
      })
      .toArray(),
  );
  const missing = found.filter(
    ({ eventType = null, isTarget, isAdded }) => !isTarget && !isAdded && wants(eventType),
  );
  const readTo = found.length < limit ? null : (found.at(-1)?._id ?? null);
  const erased = missing.filter(({ isPayloadErased }) => isPayloadErased).length;
  return { ids: missing.map(({ _id: id }) => id), erased, readTo };
}

type FilteredDocument = Pick<
  MessageDocument,
  '_id' | 'payload' | 'eventType' | 'tags' | 'isPayloadErased'
>;

const FILTERED = { payload: 1, eventType: 1, tags: 1, isPayloadErased: 1 } as const;
/** 4 MiB of the largest payloads, which take 50 ms of CPU time to parse. */
const FILTERED_AT_ONCE = { batch: 16, part: 16 };

async function findPassing(
  messages: Days['messages'],
  { companyId, ids, filter }: { companyId: string; ids: readonly string[]; filter: Filter },
): Promise<string[]> {
  const passing = new Set<string>();
  // One day after the other: a page may have hundreds of large payloads.
  for (const { documents, items } of messages.group(ids, itself)) {
    const found = documentsIn<'messages'>(documents, companyId)
      .find({ _id: { $in: [...items] } })
      .project<FilteredDocument>(FILTERED);
    for await (const part of readInParts(found, FILTERED_AT_ONCE)) {
      for (const each of part) if (isPassing(each, filter)) passing.add(each._id);
    }
  }
  return ids.filter((id) => passing.has(id));
}

function isPassing(
  { payload, eventType, tags, isPayloadErased }: FilteredDocument,
  filter: Filter,
): boolean {
  if (isPayloadErased) return true;
  return matches(filter, factsOf({ payload, eventType: eventType ?? null, tags })).matches;
}

type Wanted = Pick<Added, 'companyId' | 'webhookId' | 'messageIds'>;

const UNERASED = { isPayloadErased: { $ne: true } } as const;
const itself = (id: string): string => id;

async function addTarget(
  messages: Days['messages'],
  { companyId, webhookId, messageIds }: Wanted,
): Promise<void> {
  await writeByDays(messages, messageIds, itself, (documents, ofDay) =>
    documentsIn<'messages'>(documents, companyId).updateMany(
      { _id: { $in: [...ofDay] }, targets: { $ne: webhookId }, ...UNERASED },
      { $addToSet: { addedTargets: webhookId } },
    ),
  );
}

type AddedDocument = Pick<
  MessageDocument,
  | '_id'
  | 'appId'
  | 'erasesPayload'
  | 'omitsResponses'
  | 'deliverAt'
  | 'expiresAt'
  | 'removeAt'
  | 'orderingKey'
>;

const ADDED = {
  appId: 1,
  erasesPayload: 1,
  omitsResponses: 1,
  deliverAt: 1,
  expiresAt: 1,
  removeAt: 1,
  orderingKey: 1,
} as const;

/** Read after the write: a payload that was erased in between stays erased, and its message is left out. */
async function readAdded(
  messages: Days['messages'],
  { companyId, webhookId, messageIds }: Wanted,
): Promise<AddedDocument[]> {
  const found = await readByIds(messages, messageIds, (documents, ofDay) =>
    documentsIn<'messages'>(documents, companyId)
      .find({ _id: { $in: ofDay }, addedTargets: webhookId, ...UNERASED })
      .project<AddedDocument>(ADDED)
      .toArray(),
  );
  return found.sort((a, b) => (a._id < b._id ? -1 : 1));
}
