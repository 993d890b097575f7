import type { Delivery, DeliveryStatus, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import type { Waiting } from '@posthorn/domain/waiting.ts';
import { firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import { DISABLED_AT_ACCEPTANCE } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { StuckDelivery } from '@posthorn/domain/delivery/stuck-delivery.ts';
import type { mongo } from 'mongoose';
import { type CompanyDocuments, documentsIn } from '../company-documents.ts';
import { BY_REASON_KEY } from '../days/day-collections.ts';
import type { Database, Days } from '../days/days.ts';
import { countUpTo, readAll, readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';
import { hasCode } from '../indexes.ts';
import { planOf, toDelivery } from './deliveries.ts';
import {
  type DeliveryPage,
  type DeliveryPosition,
  mergePages,
  pageOfRead,
} from './delivery-pages.ts';
import {
  createStatedDeliveries,
  type StatedDeliveries,
  type StatedDelivery,
} from './stated-deliveries.ts';

/** A delivery as lists show it, without its attempts. */
export interface DeliveryOutline {
  id: string;
  webhookId: string;
  status: DeliveryStatus;
  attemptCount: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** A delivery as the list of deliveries shows it. Times are in milliseconds since 1970. */
export interface ListedDelivery extends DeliveryOutline {
  messageId: string;
  appId: string | null;
  reason: Delivery['reason'];
  nextAttemptAtMs: number | null;
  waiting: Waiting | null;
  waitingSinceMs: number | null;
  /** The outcome of the last attempt; null without one. */
  lastOutcome: Outcome | null;
}

/** The statuses that the indexes of deliveries contain. Nearly all deliveries are delivered, and in none of them. */
export type UndeliveredStatus = Exclude<DeliveryStatus, 'delivered'>;

export interface UndeliveredFilter {
  status: UndeliveredStatus;
  /**
   * Only where an index has it, and the caller filters all the same: with a webhook none has, and after an upgrade an old
   * day gets it within minutes.
   */
  reason?: DeliveryDocument['reason'] | undefined;
  webhookId?: string | undefined;
  /** Bounds of the time in their ids, in milliseconds since 1970: `fromMs` is inclusive, `beforeMs` is exclusive. */
  fromMs?: number | undefined;
  beforeMs?: number | undefined;
  after?: DeliveryPosition | undefined;
}

export interface FailureFilter {
  status: 'exhausted' | 'cancelled';
  /** Bounds of the message's id: `fromId` is inclusive, `beforeId` is exclusive. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** The part of an attempt that statistics need, without the response. */
export type AttemptFigures = Pick<AttemptDocument, 'outcome' | 'durationMs' | 'startedAt'>;

/** The part of a delivery that statistics need. */
export interface DeliveryFigures {
  status: DeliveryStatus;
  attempts: AttemptFigures[];
}

/** The API's queries about the deliveries of one company. A delivery that is not recorded yet is not found. */
export interface DeliveryQueries {
  findMany: (companyId: string, ids: readonly string[]) => Promise<Delivery[]>;
  outlinesOf: (companyId: string, ids: readonly string[]) => Promise<DeliveryOutline[]>;
  /** Of each delivery that is recorded. */
  figuresOf: (companyId: string, ids: readonly string[]) => Promise<DeliveryFigures[]>;
  /** Of each delivery that is recorded. */
  listedOf: (companyId: string, ids: readonly string[]) => Promise<ListedDelivery[]>;
  /**
   * Deliveries of one status that are recorded or stated by their message: those of the newest message first, the greatest
   * id first among them.
   */
  listUndelivered: (
    companyId: string,
    filter: UndeliveredFilter,
    limit: number,
  ) => Promise<DeliveryPage<ListedDelivery>>;
  /**
   * The message ids of failed deliveries, newest first; an id comes once for each of its failures that is recorded, and
   * once for those that the message states.
   */
  messagesOfFailed: (companyId: string, filter: FailureFilter, limit: number) => Promise<string[]>;
  /** How many deliveries of the webhook are pending, without `exceptIds`; counts up to `limit`. */
  countPending: (
    companyId: string,
    webhookId: string,
    exceptIds: readonly string[],
    limit: number,
  ) => Promise<number>;
}

type OutlineDocument = Pick<
  DeliveryDocument,
  '_id' | 'webhookId' | 'status' | 'attemptCount' | 'createdAt' | 'updatedAt'
>;

const OUTLINE = { webhookId: 1, status: 1, attemptCount: 1, createdAt: 1, updatedAt: 1 } as const;

const FIGURES = {
  _id: 0,
  status: 1,
  'attempts.outcome': 1,
  'attempts.durationMs': 1,
  'attempts.startedAt': 1,
} as const;

/** 0.4 MB of the 16 MB that a query may have. A page of messages to 1,000 webhooks each has 500,000 ids. */
const MAX_IDS = 10_000;

export function createDeliveryQueries(db: Pick<Database, 'days'>): DeliveryQueries {
  const { deliveries } = db.days;
  const stated = createStatedDeliveries(db);
  /** Reads the deliveries of these ids that belong to the company and have not expired. */
  const read = async <Found>(
    companyId: string,
    ids: readonly string[],
    find: (own: CompanyDocuments<'deliveries'>, wanted: Wanted) => Promise<Found[]>,
  ): Promise<Found[]> =>
    readByIds(
      deliveries,
      ids.filter((id) => deliveries.isKept(id)),
      (documents, ofDay) =>
        find(documentsIn<'deliveries'>(documents, companyId), { _id: { $in: ofDay } }),
    );
  return {
    findMany: (companyId, ids) =>
      read(companyId, ids, async (own, wanted) => {
        const found = await own.find(wanted).toArray();
        return found
          .filter(({ _id, removeAt }) => deliveries.isKept(_id, removeAt))
          .map(toDelivery);
      }),
    async outlinesOf(companyId, ids) {
      const found: DeliveryOutline[] = [];
      for (let from = 0; from < ids.length; from += MAX_IDS) {
        const some = ids.slice(from, from + MAX_IDS);
        const page = await read(companyId, some, (own, wanted) =>
          own.find(wanted).project<OutlineDocument>(OUTLINE).toArray(),
        );
        found.push(...page.map(toOutline));
      }
      return found;
    },
    figuresOf: (companyId, ids) =>
      read(companyId, ids, (own, wanted) =>
        own.find(wanted).project<DeliveryFigures>(FIGURES).toArray(),
      ),
    messagesOfFailed: messagesOfFailedIn(deliveries, stated),
    listedOf: (companyId, ids) =>
      read(companyId, ids, async (own, wanted) =>
        shownOf(deliveries, await own.find(wanted).project<ListedDocument>(LISTED).toArray()),
      ),
    listUndelivered: (companyId, filter, limit) =>
      listUndelivered({ deliveries, stated }, companyId, filter, limit),
    countPending: countPendingIn(deliveries),
  };
}

function messagesOfFailedIn(
  deliveries: Days['deliveries'],
  stated: StatedDeliveries,
): DeliveryQueries['messagesOfFailed'] {
  return async (companyId, filter, limit) => {
    const stating =
      filter.status === 'cancelled' ? await stated.messageIds(companyId, filter, limit) : [];
    const span = deliveries.kept(filter, 'msg');
    const newestFirst = deliveries.within(span).reverse();
    const page = await readUpTo(newestFirst, limit, (documents, left) => {
      const own = documentsIn<'deliveries'>(documents, companyId);
      const found = own.find(failedFilter({ ...filter, ...span })).sort({ messageId: -1 });
      return found.limit(left).project<{ messageId: string }>({ messageId: 1 }).toArray();
    });
    const recorded = page.map(({ messageId }) => messageId);
    if (stating.length === 0) return recorded;
    return [...stating, ...recorded].sort((a, b) => (a < b ? 1 : -1)).slice(0, limit);
  };
}

function countPendingIn(deliveries: Days['deliveries']): DeliveryQueries['countPending'] {
  return async (companyId, webhookId, exceptIds, limit) => {
    const span = deliveries.kept({}, 'dlv');
    const _id = { $nin: [...exceptIds], $gte: span.fromId };
    const filter = { webhookId, status: 'pending', _id } as const;
    const { sum } = await countUpTo(deliveries.within(span), limit, (documents, left) =>
      documentsIn<'deliveries'>(documents, companyId).count(filter, { limit: left }),
    );
    return sum;
  };
}

type ListedDocument = Omit<DeliveryDocument, 'attempts'> & { lastOutcome?: Outcome };

const LISTED = {
  messageId: 1,
  webhookId: 1,
  appId: 1,
  status: 1,
  reason: 1,
  attemptCount: 1,
  nextAttemptAt: 1,
  waiting: 1,
  waitingSince: 1,
  createdAt: 1,
  updatedAt: 1,
  removeAt: 1,
  lastOutcome: { $last: '$attempts.outcome' },
} as const;

/** Returns the deliveries to show: those that are to be removed soon are left out. */
function shownOf(
  deliveries: Days['deliveries'],
  found: readonly ListedDocument[],
): ListedDelivery[] {
  return found.filter(({ _id, removeAt }) => deliveries.isKept(_id, removeAt)).map(toListed);
}

function toListed(document: ListedDocument): ListedDelivery {
  const { messageId, appId, reason, lastOutcome } = document;
  return {
    ...toOutline(document),
    messageId,
    appId,
    reason,
    ...planOf(document),
    lastOutcome: lastOutcome ?? null,
  };
}

/** MongoDB knows no index of a hint. */
const BAD_VALUE = 2;

interface ListedDeps {
  deliveries: Days['deliveries'];
  stated: StatedDeliveries;
}

/** What is recorded is read last: a delivery that a resend records meanwhile is in both, and not in neither. */
async function listUndelivered(
  { deliveries, stated }: ListedDeps,
  companyId: string,
  filter: UndeliveredFilter,
  limit: number,
): Promise<DeliveryPage<ListedDelivery>> {
  const page = isStated(filter) ? await listStated(stated, companyId, filter, limit) : null;
  const recorded = await listRecorded(deliveries, companyId, filter, limit);
  const ofRecorded = pageOfRead(recorded, limit);
  return page ? mergePages([page, ofRecorded], listOrderOf(filter), limit) : ofRecorded;
}

/** The order of lists: a webhook has one delivery of a message, whose ids are in an order of their own. */
export function listOrderOf({
  webhookId,
}: Pick<UndeliveredFilter, 'webhookId'>): 'newest' | 'newest_messages' {
  return webhookId === undefined ? 'newest_messages' : 'newest';
}

/** Whether messages state deliveries of this status and reason. */
export function isStated({
  status,
  reason,
}: Pick<UndeliveredFilter, 'status' | 'reason'>): boolean {
  return status === 'cancelled' && (reason === undefined || reason === DISABLED_AT_ACCEPTANCE);
}

async function listStated(
  stated: StatedDeliveries,
  companyId: string,
  { webhookId, fromMs, beforeMs, after }: UndeliveredFilter,
  limit: number,
): Promise<DeliveryPage<ListedDelivery>> {
  const spanOf = (prefix: 'msg' | 'dlv') => ({
    fromId: fromMs === undefined ? undefined : firstIdAt(prefix, fromMs),
    beforeId: beforeMs === undefined ? undefined : firstIdAt(prefix, beforeMs),
  });
  if (webhookId === undefined) {
    const page = await stated.ofCompany(companyId, { ...spanOf('msg'), after }, limit);
    return { ...page, found: page.found.map(listedOfStated) };
  }
  const { fromId, beforeId } = spanOf('dlv');
  const isNext = after && (beforeId === undefined || after.deliveryId < beforeId);
  const span = { fromId, beforeId: isNext ? after.deliveryId : beforeId };
  const page = await stated.ofWebhook({ companyId, webhookId }, span, { limit, order: 'newest' });
  return { ...page, found: page.found.map(listedOfStated) };
}

function listedOfStated({ id, messageId, webhookId, appId }: StatedDelivery): ListedDelivery {
  const createdAtMs = timeMsOf(messageId);
  return {
    id,
    messageId,
    webhookId,
    appId,
    status: 'cancelled',
    reason: DISABLED_AT_ACCEPTANCE,
    attemptCount: 0,
    nextAttemptAtMs: null,
    waiting: null,
    waitingSinceMs: null,
    lastOutcome: null,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}

/** Each read goes along one index, in its order. */
async function listRecorded(
  deliveries: Days['deliveries'],
  companyId: string,
  { after, fromMs, beforeMs, webhookId, status, reason }: UndeliveredFilter,
  limit: number,
): Promise<ListedDelivery[]> {
  const rangeOf = (prefix: 'msg' | 'dlv', before?: string): IdRange => {
    const first = fromMs === undefined ? undefined : firstIdAt(prefix, fromMs);
    const end = beforeMs === undefined ? undefined : firstIdAt(prefix, beforeMs);
    const beforeId = before !== undefined && (end === undefined || before < end) ? before : end;
    return deliveries.kept({ fromId: first, beforeId }, prefix);
  };
  const list = async (filter: ListFilter, sort: mongo.Sort, ids: IdRange, most: number) => {
    const page = await readUpTo(deliveries.within(ids).reverse(), most, (documents, left) => {
      const own = documentsIn<'deliveries'>(documents, companyId);
      const read = (wanted: ListFilter, hint?: mongo.Hint): Promise<ListedDocument[]> => {
        // A page that is short ends the list.
        const found = own.find({ status, ...wanted, ...deliveries.notRemoved() }).sort(sort);
        if (hint) found.hint(hint);
        return found.limit(left).project<ListedDocument>(LISTED).toArray();
      };
      if (filter.reason === undefined) return read(filter);
      const { reason: _reason, ...others } = filter;
      return read(filter, BY_REASON_KEY).catch((error: unknown) => {
        if (hasCode(error, BAD_VALUE)) return read(others);
        throw error;
      });
    });
    return page.map(toListed);
  };
  if (webhookId !== undefined) {
    // A webhook has one delivery of a message, so the order of one millisecond is another than below, and complete too.
    const ids = rangeOf('dlv', after?.deliveryId);
    return list({ webhookId, _id: boundsOf(ids) }, { _id: -1 }, ids, limit);
  }
  const newestFirst = { messageId: -1, _id: -1 } as const;
  const older = rangeOf('msg', after?.messageId);
  const ofReason = reason === undefined ? {} : { reason };
  const ofOlder = { ...ofReason, messageId: boundsOf(older) };
  if (!after) return list(ofOlder, newestFirst, older, limit);
  // The last message of the page before may have 10,000 deliveries that follow.
  const { messageId, deliveryId } = after;
  const ofSame = { ...ofReason, messageId, _id: { $lt: deliveryId } };
  const same = await list(ofSame, newestFirst, { fromId: messageId, beforeId: messageId }, limit);
  const left = limit - same.length;
  return [...same, ...(await list(ofOlder, newestFirst, older, left))];
}

type IdRange = ReturnType<Days['deliveries']['kept']>;

interface IdBounds {
  $gte: string;
  $lt?: string;
}

interface ListFilter {
  reason?: DeliveryDocument['reason'];
  webhookId?: string;
  messageId?: string | IdBounds;
  _id?: IdBounds | { $lt: string };
}

function boundsOf({ fromId, beforeId }: IdRange): IdBounds {
  return { $gte: fromId, ...(beforeId !== undefined && { $lt: beforeId }) };
}

interface Wanted {
  _id: { $in: string[] };
}

function failedFilter({ status, fromId, beforeId }: FailureFilter) {
  const range = { ...(fromId && { $gte: fromId }), ...(beforeId && { $lt: beforeId }) };
  return { status, ...(Object.keys(range).length > 0 && { messageId: range }) };
}

function toOutline(document: OutlineDocument): DeliveryOutline {
  const { _id: id, webhookId, status, attemptCount, createdAt, updatedAt } = document;
  const times = { createdAtMs: createdAt.getTime(), updatedAtMs: updatedAt.getTime() };
  return { id, webhookId, status, attemptCount, ...times };
}

/**
 * Finds stuck deliveries for the sweep, none that wait: these have no record by intent, and their release finds them
 * (waiting-deliveries.ts). Times are in milliseconds since 1970.
 */
export interface StuckDeliveries {
  /** Pending deliveries whose next attempt was due before `beforeMs`, the longest overdue first. */
  findOverdue: (beforeMs: number, limit: number) => Promise<StuckDelivery[]>;
  /** Pending deliveries without a next attempt that have not changed since `beforeMs`. */
  findUnended: (beforeMs: number, limit: number) => Promise<StuckDelivery[]>;
  /**
   * Makes the deliveries due at `atMs`, so that the next sweep finds them only if they stay stuck for
   * as long again. Leaves those alone that have moved on since they were found.
   */
  markSwept: (deliveries: readonly StuckDelivery[], atMs: number) => Promise<void>;
}

/** A million that wait cost nothing: the index is by `waiting` first (DUE_KEY). */
const NOT_WAITING = { waiting: { $exists: false } } as const;

export function createStuckDeliveries({
  days: { deliveries },
}: Pick<Database, 'days'>): StuckDeliveries {
  const newest = { attempts: { $slice: -1 } };
  /** An expired delivery is not started again, although its day is still there. */
  const pending = () => {
    const span = deliveries.kept({}, 'dlv');
    const filter = { status: 'pending', _id: { $gte: span.fromId } } as const;
    return { filter, days: deliveries.within(span) };
  };
  return {
    async findOverdue(beforeMs, limit) {
      const { filter, days } = pending();
      const overdue = { ...filter, ...NOT_WAITING, nextAttemptAt: { $lt: new Date(beforeMs) } };
      // Every day may have as many, and only the longest overdue of all are read whole.
      const due = await readAll(days, (documents) => {
        const longestFirst = documents.find(overdue).sort({ nextAttemptAt: 1 }).limit(limit);
        return longestFirst.project<Due>({ nextAttemptAt: 1 }).toArray();
      });
      const chosen = due.flat().sort(byDue).slice(0, limit);
      const ids = chosen.map(({ _id }) => _id);
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documents
          .find({ ...overdue, _id: { $in: ofDay } })
          .project<Due & DeliveryDocument>(newest)
          .toArray(),
      );
      return found.sort(byDue).map(toDelivery);
    },
    async findUnended(beforeMs, limit) {
      const { filter, days } = pending();
      const before = { $lt: new Date(beforeMs) };
      const unended = { ...filter, ...NOT_WAITING, nextAttemptAt: null, updatedAt: before };
      const found = await readUpTo(days, limit, (documents, left) =>
        documents.find(unended).project<DeliveryDocument>(newest).limit(left).toArray(),
      );
      return found.map(toDelivery);
    },
    async markSwept(swept, atMs) {
      const at = new Date(atMs);
      const idOf = ({ id }: StuckDelivery): string => id;
      await writeByDays(deliveries, swept, idOf, async (documents, ofDay) => {
        const marks = ofDay.map((each) => markOf(each, at));
        await documents.bulkWrite(marks, { ordered: false });
      });
    },
  };
}

interface Due {
  _id: string;
  nextAttemptAt: Date;
}

const byDue = (a: Due, b: Due): number => a.nextAttemptAt.getTime() - b.nextAttemptAt.getTime();

function markOf(
  { id: _id, attemptCount, nextAttemptAtMs }: StuckDelivery,
  at: Date,
): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const filter = { _id, status: 'pending', attemptCount, ...NOT_WAITING } as const;
  const nextAttemptAt = nextAttemptAtMs === null ? null : at;
  return { updateOne: { filter, update: { $set: { nextAttemptAt, updatedAt: at } } } };
}
